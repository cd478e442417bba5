"""Asks a running server with instructor, LangChain, Pydantic AI, LiteLLM and Outlines.

    pip install instructor langchain-openai "pydantic-ai-slim[openai]" litellm outlines
    cargo run --release --bin burn-dfa-serve &
    python models/serve/tests/clients/python_clients.py http://127.0.0.1:8000

Every check prints a line; the first that fails ends the program with an error.
"""

import sys

import instructor
import litellm
import outlines
from langchain_openai import ChatOpenAI
from openai import OpenAI
from outlines.types import CFG, Regex
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000") + "/v1"
MODEL = OpenAI(base_url=URL, api_key="none").models.list().data[0].id
SENTENCE = "Please send 12 brass lamps to Oscar Lund."


class Order(BaseModel):
    item: str
    quantity: int


def check(name: str, order: Order) -> None:
    assert isinstance(order, Order), order
    print(name, order)


messages = [{"role": "user", "content": SENTENCE}]
for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS):
    client = instructor.from_openai(OpenAI(base_url=URL, api_key="none"), mode=mode)
    check(f"instructor {mode}", client.chat.completions.create(model=MODEL, messages=messages, response_model=Order))

chain = ChatOpenAI(base_url=URL, api_key="none", model=MODEL, max_tokens=100)
for method in ("json_schema", "function_calling"):
    check(f"langchain {method}", chain.with_structured_output(Order, method=method).invoke(SENTENCE))
streamed = "".join(chunk.content for chunk in chain.stream(SENTENCE))
assert streamed, "an empty stream"
print("langchain stream", streamed)

model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key="none"))
for name, output in (("tool", Order), ("native", NativeOutput(Order))):
    check(f"pydantic-ai {name}", Agent(model, output_type=output).run_sync(SENTENCE).output)

answer = litellm.completion(model=f"openai/{MODEL}", api_base=URL, api_key="none", messages=messages, response_format=Order)
check("litellm", Order.model_validate_json(answer.choices[0].message.content))

client = OpenAI(base_url=URL, api_key="none")
check("outlines openai", Order.model_validate_json(outlines.from_openai(client, MODEL)(SENTENCE, Order)))
# The fields of vLLM, whose grammars are in Lark or EBNF, and of SGLang.
ebnf, lark = 'root ::= "yes" | "no"', 'start: "yes" | "no"'
for name, of_server, grammars in (("vllm", outlines.from_vllm, (ebnf, lark)), ("sglang", outlines.from_sglang, (ebnf,))):
    model = of_server(client, MODEL)
    check(f"outlines {name}", Order.model_validate_json(model(SENTENCE, Order)))
    digits = model(SENTENCE, Regex("[0-9]{2}"))
    assert len(digits) == 2 and digits.isdigit(), digits
    answers = [model(SENTENCE, CFG(grammar)) for grammar in grammars]
    assert all(answer in ("yes", "no") for answer in answers), answers
    print(f"outlines {name}", digits, answers)
