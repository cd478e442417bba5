"""Asks a running server with instructor, in each of its modes for OpenAI's API.

    pip install instructor
    cargo run --release --bin burn-dfa-serve -- --model DIR &
    python models/serve/tests/clients/instructor_client.py http://127.0.0.1:8000

Every check prints a line; the first that fails ends the program with an error. The modes `JSON` and `MD_JSON` state the schema only in
the prompt, so the model may miss it. The prompts are too long for the embedded model.
"""

import sys
from collections.abc import Iterable

import instructor
from instructor import Mode
from instructor.core import IncompleteOutputException, InstructorRetryException
from openai import APIError, OpenAI
from pydantic import BaseModel, Field

URL = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000") + "/v1"
CLIENT = OpenAI(base_url=URL, api_key="none", max_retries=0)
MODEL = CLIENT.models.list().data[0].id
SENTENCE = "Please send 12 brass lamps to Oscar Lund."


class Order(BaseModel):
    item: str = Field(max_length=40)
    quantity: int = Field(ge=1, le=1000)


class Customer(BaseModel):
    name: str = Field(max_length=40)


def ask(mode, response_model, **more):
    client = instructor.from_openai(CLIENT, mode=mode)
    messages = [{"role": "user", "content": SENTENCE}]
    return client.create(model=MODEL, messages=messages, response_model=response_model, max_retries=0, **more)


# The schema is enforced.
for mode in (Mode.JSON_SCHEMA, Mode.TOOLS, Mode.TOOLS_STRICT, Mode.FUNCTIONS, Mode.RESPONSES_TOOLS):
    more = {"strict": True} if mode is Mode.TOOLS_STRICT else {}
    order = ask(mode, Order, **more)
    assert isinstance(order, Order), order
    print(mode.name, order)

# A list of objects, and an object that grows while it streams.
for mode in (Mode.JSON_SCHEMA, Mode.TOOLS):
    parts = list(ask(mode, instructor.Partial[Order], stream=True))
    assert parts and Order.model_validate(parts[-1].model_dump()), parts
    print(mode.name, "stream", parts[-1])

# The model chooses between tools. It may answer with text.
try:
    calls = list(ask(Mode.PARALLEL_TOOLS, Iterable[Order | Customer], max_tokens=300))
    assert calls and all(isinstance(call, Order | Customer) for call in calls), calls
    print(Mode.PARALLEL_TOOLS.name, calls)
except (InstructorRetryException, IncompleteOutputException) as error:
    assert "No tool calls" in str(error) or "incomplete" in str(error), error
    print(Mode.PARALLEL_TOOLS.name, "text instead of calls")

# The schema is only in the prompt.
for mode in (Mode.JSON, Mode.MD_JSON):
    try:
        order = ask(mode, Order, max_tokens=300)
        print(mode.name, order)
    except IncompleteOutputException:
        print(mode.name, "the model wrote too much")
    except InstructorRetryException as error:
        causes = [attempt.exception for attempt in error.failed_attempts]
        assert not any(isinstance(cause, APIError) for cause in causes), causes
        print(mode.name, "the model missed the schema:", type(causes[-1]).__name__)
