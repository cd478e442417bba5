"""Asks a running server with the official client of OpenAI.

    pip install openai
    cargo run --release --bin burn-dfa-serve -- --api-key secret &
    python models/serve/tests/clients/openai_client.py http://127.0.0.1:8000 secret

Every check prints a line; the first that fails ends the program with an error.
"""

import json
import sys

from openai import BadRequestError, NotFoundError, OpenAI, AuthenticationError
from pydantic import BaseModel

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
KEY = sys.argv[2] if len(sys.argv) > 2 else "none"
CLIENT = OpenAI(base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0)
MODEL = CLIENT.models.list().data[0].id
SENTENCE = "Please send 12 brass lamps to Oscar Lund."
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Forecasts the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "day": {"type": "string", "enum": ["today", "tomorrow"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Order(BaseModel):
    item: str
    quantity: int
    customer: str
    express: bool


def user(text):
    return [{"role": "user", "content": text}]


def chat(**more):
    return CLIENT.chat.completions.create(model=MODEL, **{"messages": user(SENTENCE), **more})


def check_chat():
    answer = chat(max_tokens=20)
    assert answer.choices[0].message.role == "assistant"
    assert answer.usage.completion_tokens <= 20


def check_parse():
    answer = CLIENT.chat.completions.parse(model=MODEL, messages=user(SENTENCE), response_format=Order)
    order = answer.choices[0].message.parsed
    assert isinstance(order, Order), answer
    print("   ", order)


def check_stream():
    whole = chat(response_format={"type": "json_object"}).choices[0].message.content
    pieces, usage = [], None
    options = {"include_usage": True}
    for chunk in chat(response_format={"type": "json_object"}, stream=True, stream_options=options):
        pieces += [choice.delta.content or "" for choice in chunk.choices]
        usage = chunk.usage or usage
    assert "".join(pieces) == whole and usage.total_tokens > 0
    json.loads(whole)


def check_stream_helper():
    with CLIENT.chat.completions.stream(model=MODEL, messages=user(SENTENCE), response_format=Order) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Order)


def check_tools():
    question = user("What will the weather be like in Lisbon tomorrow?")
    free = chat(messages=question, tools=[WEATHER], max_tokens=60).choices[0]
    assert free.finish_reason in ("stop", "tool_calls", "length"), free
    answer = chat(messages=question, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False)
    assert answer.choices[0].finish_reason == "tool_calls", answer
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "get_weather"
    print("   ", call.function.arguments)
    parts = ""
    for chunk in chat(messages=question, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, stream=True):
        for choice in chunk.choices:
            for delta in choice.delta.tool_calls or []:
                parts += delta.function.arguments or ""
    assert json.loads(parts)["city"]
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}
    follow = question + [answer.choices[0].message.model_dump(exclude_none=True), result]
    assert chat(messages=follow, tools=[WEATHER], max_tokens=40).choices


def check_constraints_of_others():
    answer = chat(extra_body={"structured_outputs": {"choice": ["lamps", "tables"]}})
    assert answer.choices[0].message.content in ("lamps", "tables")
    answer = chat(extra_body={"guided_regex": "[0-9]{1,3}"})
    assert answer.choices[0].message.content.isdigit()


def check_sampling():
    answers = chat(n=3, temperature=1.0, seed=1, max_tokens=10).choices
    assert [answer.index for answer in answers] == [0, 1, 2]


def check_logprobs():
    answer = chat(logprobs=True, top_logprobs=3, max_tokens=5)
    tokens = answer.choices[0].logprobs.content
    assert len(tokens) == answer.usage.completion_tokens
    for token in tokens:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
    answer = CLIENT.completions.create(model=MODEL, prompt="<|user|>Hi<|assistant|>", max_tokens=4, logprobs=2)
    assert len(answer.choices[0].logprobs.tokens) == answer.usage.completion_tokens


def check_completions():
    answer = CLIENT.completions.create(model=MODEL, prompt="<|user|>Hi<|assistant|>", extra_body={"regex": "[a-z]{4}"})
    assert len(answer.choices[0].text) == 4


def check_responses():
    response = CLIENT.responses.parse(model=MODEL, input=SENTENCE, text_format=Order)
    assert isinstance(response.output_parsed, Order), response
    with CLIENT.responses.stream(model=MODEL, input=SENTENCE, text_format=Order) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_response().output_parsed, Order)
    flat = {"type": "function", "strict": True, **WEATHER["function"]}
    response = CLIENT.responses.create(model=MODEL, input="What will the weather be like in Lisbon?", tools=[flat], tool_choice="required")
    assert response.output[0].type == "function_call"


def refused(kind, ask):
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError("it was not refused")


def check_errors():
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "nothing"}}}
    assert refused(BadRequestError, lambda: chat(response_format=schema)).param == "response_format"
    assert refused(BadRequestError, lambda: chat(max_tokens=1, response_format={"type": "json_object"}, extra_body={"x": 1})) is not None
    assert refused(NotFoundError, lambda: CLIENT.chat.completions.create(model="other", messages=user("Hi"))).code == "model_not_found"
    assert refused(NotFoundError, lambda: CLIENT.responses.create(model=MODEL, input="Hi", previous_response_id="r")).param == "previous_response_id"
    if KEY != "none":
        other = OpenAI(base_url=f"{ADDRESS}/v1", api_key="wrong", max_retries=0)
        refused(AuthenticationError, other.models.list)


for name, check in list(globals().items()):
    if name.startswith("check_"):
        print(name.removeprefix("check_").replace("_", " "))
        check()
print("all is well")
