"""Asks a running server for values of many classes of Pydantic, and validates each answer with its class.

    pip install "pydantic[email]" openai
    cargo run --release --bin burn-dfa-serve &
    python models/serve/tests/clients/pydantic_client.py http://127.0.0.1:8000 20

The last argument is the number of answers for each class. Keywords that the server ignores with a warning are printed.
"""

import json
import pathlib
import subprocess
import sys

from openai import OpenAI

URL = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000") + "/v1"
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 20
CLIENT = OpenAI(base_url=URL, api_key="none", max_retries=0)
MODEL = CLIENT.models.list().data[0].id
CLASSES = pathlib.Path(__file__).resolve().parents[4] / "crates/testing/tests/suite/json_schema/pydantic_classes.py"

schemas = subprocess.run([sys.executable, CLASSES, "schemas"], check=True, capture_output=True, text=True).stdout
lines = []
for name, schema in map(json.loads, schemas.splitlines()):
    form = {"type": "json_schema", "json_schema": {"name": "value", "schema": schema}}
    messages = [{"role": "user", "content": f"Write an example of the class {name}."}]
    texts, warnings = [], []
    while len(texts) < COUNT:
        # Small budgets give short answers, large ones give long lists.
        budget = 150 if len(texts) < COUNT // 2 else 220
        sampling = {"temperature": 1, "seed": len(texts), "n": min(5, COUNT - len(texts))}
        answer = CLIENT.chat.completions.create(
            model=MODEL, messages=messages, response_format=form, max_tokens=budget, **sampling
        )
        assert all(choice.finish_reason == "stop" for choice in answer.choices), answer
        texts += [choice.message.content for choice in answer.choices]
        warnings = getattr(answer, "warnings", [])
    print(name, [warning["message"] for warning in warnings], texts[0])
    lines += [json.dumps([name, text]) for text in texts]
judged = subprocess.run([sys.executable, CLASSES, "validate"], input="\n".join(lines), text=True)
sys.exit(judged.returncode)
