"""Asks a running server with agents that have tools and typed answers: Pydantic AI, and OpenAI's agents.

    pip install "pydantic-ai-slim[openai]" openai-agents
    cargo run --release --bin burn-dfa-serve -- --model DIR &
    python models/serve/tests/clients/agent_clients.py http://127.0.0.1:8000

Every check prints a line; the first that fails ends the program with an error. The prompts are too long for
the embedded model.
"""

import asyncio
import sys

import agents
from agents import ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, Tool, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel as ResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

URL = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000") + "/v1"
MODEL = OpenAI(base_url=URL, api_key="none").models.list().data[0].id
CLIENT = AsyncOpenAI(base_url=URL, api_key="none", max_retries=0)
SENTENCE = "Please send 12 brass lamps to Oscar Lund."
called = []


class Order(BaseModel):
    item: str = Field(max_length=40)
    quantity: int = Field(ge=1, le=1000)


def in_stock(item: str) -> int:
    """How many pieces of an item are in stock.

    Args:
        item: The name of the item.
    """
    called.append(item)
    return 40


async def once(context, definition):
    """The tool is offered until it has been called, so that every run ends."""
    return None if called else definition


def check(name, order):
    assert isinstance(order, Order), order
    print(name, order, called)
    called.clear()


async def ask_pydantic_ai():
    provider = OpenAIProvider(openai_client=CLIENT)
    tool = Tool(in_stock, prepare=once)
    for kind in (OpenAIChatModel, ResponsesModel):
        model = kind(MODEL, provider=provider)
        for output in (NativeOutput, ToolOutput):
            for tools in ([], [tool]):
                name = f"pydantic-ai {kind.__name__} {output.__name__} {len(tools)} tools"
                agent = Agent(model, output_type=output(Order), tools=tools)
                check(name, (await agent.run(SENTENCE)).output)
                async with agent.run_stream(SENTENCE) as answer:
                    check(f"{name}, stream", await answer.get_output())


async def ask_agents():
    agents.set_tracing_disabled(True)
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        model = kind(model=MODEL, openai_client=CLIENT)
        agent = agents.Agent("orders", model=model, output_type=Order)
        check(f"agents {kind.__name__}", (await Runner.run(agent, SENTENCE)).final_output)
        tool = function_tool(in_stock, is_enabled=lambda context, agent: not called)
        for choice in ("auto", "required"):
            name = f"agents {kind.__name__} {choice}"
            settings = ModelSettings(tool_choice=choice, max_tokens=300)
            agent = agents.Agent("orders", model=model, output_type=Order, tools=[tool], model_settings=settings)
            answer = await Runner.run(agent, SENTENCE)
            assert called or choice == "auto"
            check(name, answer.final_output)
            answer = Runner.run_streamed(agent, SENTENCE)
            async for _ in answer.stream_events():
                pass
            check(f"{name}, stream", answer.final_output)


async def main():
    await ask_pydantic_ai()
    await ask_agents()


asyncio.run(main())
