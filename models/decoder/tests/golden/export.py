"""Writes the golden checkpoints beside this file with Hugging Face transformers.

    pip install torch transformers safetensors
    python export.py [NAME …]

Each folder holds a small model with random weights (`config.json`, `model.safetensors`) and
`expected.json`: right-aligned prompts, the logits after every token of one batch, the logits after the
last token of every prompt, and 32 greedy tokens for each. Everything is computed in f32 on the CPU, without a cache.
`rope.json` holds rotary frequencies. `chat.json` holds chat templates in the style of several families, conversations, and their renderings.
"""

import datetime
import json
import pathlib
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

HERE = pathlib.Path(__file__).parent
STEPS = 32

BASE = dict(
    vocab_size=128,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    bos_token_id=1,
    eos_token_id=2,
)
MODELS = {
    "tied_mha": dict(BASE, tie_word_embeddings=True),
    "untied_gqa": dict(
        BASE,
        tie_word_embeddings=False,
        num_hidden_layers=3,
        hidden_size=48,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=12,
        rms_norm_eps=1e-6,
        eos_token_id=[2, 3],
    ),
    # The original length is short, so that all three ranges of the scaling occur within 128 positions.
    "llama3_rope": dict(
        BASE,
        tie_word_embeddings=False,
        hidden_size=48,
        num_attention_heads=3,
        num_key_value_heads=1,
        rope_parameters=dict(
            rope_type="llama3",
            rope_theta=500.0,
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=32,
        ),
    ),
}

# Of the other families: smaller, and in f16. A window is shorter than every text.
SMALL = dict(
    BASE,
    vocab_size=80,
    intermediate_size=40,
    num_hidden_layers=3,
    num_key_value_heads=2,
    dtype=torch.float16,
    pad_token_id=None,
)
MODELS |= {
    "linear_rope": dict(
        SMALL,
        num_hidden_layers=2,
        rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=4.0),
    ),
    "mistral": dict(SMALL, model_type="mistral", head_dim=12, sliding_window=5),
    "qwen2": dict(
        SMALL,
        model_type="qwen2",
        tie_word_embeddings=True,
        use_sliding_window=True,
        sliding_window=5,
        max_window_layers=1,
    ),
    "qwen3": dict(SMALL, model_type="qwen3", head_dim=16, tie_word_embeddings=True),
    "qwen3_yarn": dict(
        SMALL,
        model_type="qwen3",
        head_dim=16,
        num_hidden_layers=2,
        num_key_value_heads=1,
        rope_parameters=dict(
            rope_type="yarn",
            rope_theta=1000.0,
            factor=4.0,
            original_max_position_embeddings=32,
            beta_fast=4.0,
            beta_slow=0.5,
        ),
    ),
    "smollm3": dict(SMALL, model_type="smollm3", tie_word_embeddings=True, no_rope_layer_interval=2),
    "smollm3_window": dict(
        SMALL,
        model_type="smollm3",
        no_rope_layers=[0, 1, 0],
        use_sliding_window=True,
        sliding_window=5,
    ),
    "gemma3": dict(
        SMALL,
        model_type="gemma3_text",
        num_hidden_layers=4,
        num_key_value_heads=1,
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=5,
        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=10000.0, factor=2.0),
            sliding_attention=dict(rope_type="default", rope_theta=100.0),
        ),
    ),
}

# Rotary frequencies: the parameters, and the width of a head.
ROPES = [
    (dict(rope_type="linear", rope_theta=10000.0, factor=8.0), 64),
    (dict(rope_type="llama3", rope_theta=500000.0, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192), 64),
    (dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0, original_max_position_embeddings=32768), 128),
    (dict(rope_type="yarn", rope_theta=150000.0, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=4096), 64),
    (dict(rope_type="yarn", rope_theta=10000.0, factor=40.0, mscale=1.0, mscale_all_dim=0.707, original_max_position_embeddings=4096), 64),
    (dict(rope_type="yarn", rope_theta=10000.0, factor=40.0, mscale=1.0, mscale_all_dim=0.0, original_max_position_embeddings=4096), 64),
    (dict(rope_type="yarn", rope_theta=10000.0, factor=2.0, attention_factor=1.5, original_max_position_embeddings=4), 32),
    (dict(rope_type="yarn", rope_theta=10.0, factor=16.0, original_max_position_embeddings=1048576), 16),
]

TEMPLATES = {
    "chatml": """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful assistant<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "instruct": """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "headers": """{{- bos_token }}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set ns = namespace(users=0) %}
{#- The system message comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if message.role.startswith("u") %}
        {%- set ns.users = ns.users + 1 %}
    {%- endif %}
    {%- if message.get("name") %}
        {{- message.name }}
    {%- endif %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
{#- users: #}{{ ns.users }}
""",
}
# With tools, in the style of the templates that models of these families have: what they need of Jinja and Python.
TOOL_TEMPLATES = {
    "turns": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set opening = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set opening = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set opening = "" -%}
    {%- set rest = messages -%}
{%- endif -%}
{%- for message in rest -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Roles must alternate") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<turn>' + role + '\n' + (opening if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<image>' }}{%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Roles must alternate, with a text") }}
    {%- endif -%}
    {{ '<end>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<turn>model\n' }}{%- endif -%}
""",
    "thinking": """{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}
    {{- "<tools>" }}
    {%- for tool in tools %}{{- "\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\n</tools><|im_end|>\n" }}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<answer>') and message.content.endswith('</answer>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\n' }}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}{{- '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}{%- endif %}
        {{- content }}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\n<answer>\n' + content + '\n</answer>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- elif not (loop.first and tools) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}""",
    "dated": """{# ----- defaults ----- #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{{- "<|im_start|>system\n" -}}
{%- set today = strftime_now("%d %B %Y") -%}
{{- "Today: " ~ today ~ ", " ~ strftime_now("%a %A %b %m %y %%") ~ "\n" -}}
{%- if tools -%}
  {%- set ns = namespace(text="<tools>\n") -%}
  {%- for tool in tools[:] -%}
    {%- set ns.text = ns.text ~ (tool | string) ~ "\n" -%}
  {%- endfor -%}
  {{- ns.text + "</tools>" -}}
{%- endif -%}
{%- for message in messages -%}
{%- set content = message.content if message.content is string else "" -%}
{%- if message.role == "user" -%}
    {{ "<|im_start|>" + message.role + "\n"  + content.replace("/no_think", "").rstrip() + "<|im_end|>\n" }}
{%- elif message.role == "assistant" -%}
    {% generation %}
    {%- if enable_thinking -%}
        {{ "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}
    {%- endif -%}
    {% endgeneration %}
    {% generation -%}{% set today = 1 %}{%- endgeneration %}
{%- else -%}
    {{ today }}{{ message.content }}{{ [message.role, none, true, 1.5] }}{{ true }}{{ none }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "<|im_start|>assistant\n" }}{%- endif -%}
""",
    "environment": """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}
{%- endif %}
{{- "<|header|>system<|end|>\n\nToday: " + date_string + "\n\n" }}
{%- if tools is not none %}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\n\n" }}{%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|header|>' + message['role'] + '<|end|>\n\n' + message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("Roles must alternate; one call only") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}<|eot|>" }}
        {%- for name, value in tool_call.arguments | items %}{{- name + '="' + (value | string) + '"' }}{%- if not loop.last %}{{- ", " }}{%- endif %}{%- endfor %}
    {%- else %}
        {{- "<|header|>ipython<|end|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|header|>assistant<|end|>\n\n' }}{%- endif %}
""",
    "brackets": """{%- set users = messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{%- for message in messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == users[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {{- "[INST] " + message["content"] + "[/INST]" }}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- raise_exception("Roles must alternate, with ids of nine") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] in ["tool_results", "tool"] %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + "}[/TOOL_RESULTS]" }}
    {%- endif %}
{%- endfor %}
""",
    "parameters": """{% macro list_of(items, tag='required') %}
    {%- if items is defined and items is iterable and items | length > 0 %}
        {{- '\n<' ~ tag ~ '>[' -}}
        {%- for item in items -%}
            {%- if loop.index > 1 %}{{- ", "}}{% endif -%}
            {%- if item is string -%}{{ "`" ~ item ~ "`" }}{%- else -%}{{ item }}{%- endif -%}
        {%- endfor -%}
        {{- ']</' ~ tag ~ '>' -}}
    {%- endif %}
{% endmacro %}
{%- for tool in tools or [] %}
    {%- set tool = tool.function %}
    {{- "\n<name>" ~ tool.name ~ "</name>" ~ (tool.description | default("none") | upper) }}
    {%- for name, fields in tool.parameters.properties|items %}
        {{- '\n<parameter>' ~ name }}
        {{- list_of(fields.enum, 'enum') }}
        {%- set handled = ['type', 'description', 'enum'] %}
        {%- for key in fields.keys() | reject("in", handled) %}
            {%- if fields[key] is mapping %}{{- key ~ (fields[key] | tojson | safe) }}{%- else %}{{- key ~ (fields[key] | string) }}{%- endif %}
        {%- endfor %}
    {%- endfor %}
    {{- list_of(tool.parameters.required) }}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "system" %}{%- continue %}{%- endif %}
    {%- if message.role == "tool" %}
        {%- if loop.previtem and loop.previtem.role != "tool" %}{{- '<answers>' }}{%- endif %}
        {{- message.content }}
        {%- if not loop.last and loop.nextitem.role != "tool" %}{{- '</answers>' }}{%- elif loop.last %}{{- '</last>' }}{%- endif %}
    {%- else %}
        {{- message.role | capitalize ~ ": " ~ message.content }}
        {%- for call in message.tool_calls or [] %}
            {%- for name, value in call.function.arguments|items %}
                {%- set value = value if value is string else value | string %}
                {{- name ~ "=" ~ value }}
            {%- endfor %}
        {%- endfor %}
    {%- endif %}
    {%- if message.content == "Stop" %}{%- break %}{%- endif %}
{%- endfor %}
""",
}
TOOLS = [
    dict(
        type="function",
        function=dict(
            name="get_weather",
            description="The weather at a place: \"now\", it's <b>.",
            parameters=dict(
                type="object",
                properties=dict(
                    place=dict(type="string", description="Where", minLength=1),
                    unit=dict(type="string", enum=["celsius", "kelvin", None, 3], default=None),
                    deep=dict(type="object", additionalProperties=False, properties=dict(x=dict(type="number", minimum=0.5))),
                ),
                required=["place"],
            ),
        ),
    ),
    dict(type="function", function=dict(name="now", description="", parameters=dict(type="object", properties={}))),
]


def call(name, **arguments):
    return dict(type="function", id="abcdefghi", function=dict(name=name, arguments=arguments))


TOOL_CONVERSATIONS = [
    [dict(role="user", content="How is it there? /no_think ")],
    [
        dict(role="system", content="Be brief."),
        dict(role="user", content="Grüße \n"),
        dict(role="assistant", content="<think>\nWell…\n</think>\n\nIt's \"fine\"."),
        dict(role="user", content="Stop"),
        dict(role="assistant", content="\n\nDone.\n"),
    ],
    [
        dict(role="user", content="Weather?"),
        dict(role="assistant", content="", tool_calls=[call("get_weather", place="Genève 'old'", unit=None, deep=dict(x=[1, 2.5, True]))]),
        dict(role="tool", content='{"t": 21}'),
        dict(role="tool", content="21 \\ \t"),
        dict(role="assistant", content="Warm.", reasoning_content="\nhm\n"),
        dict(role="user", content="Again"),
    ],
    [
        dict(role="system", content=[dict(type="text", text="Parts.")]),
        dict(role="user", content=[dict(type="image"), dict(type="text", text=" What is it? ")]),
    ],
]


class Day(datetime.datetime):
    """The day that `strftime_now` gives."""

    @classmethod
    def now(cls, tz=None):
        return cls(2025, 2, 9)


CONVERSATIONS = [
    [("user", "Hello")],
    [("system", " Be brief.\n"), ("user", "<b>Grüße & \"quotes\"</b> {{ 1 }} 🙂 ")],
    [("user", "One"), ("assistant", " Two "), ("user", "Three\n\n")],
    [("assistant", "Out of turn")],
]


def export_chat():
    cases = []
    for name, template in TEMPLATES.items():
        for conversation in CONVERSATIONS:
            messages = [dict(role=role, content=content) for role, content in conversation]
            for prompt in (False, True):
                try:
                    text = render_jinja_template(
                        [messages],
                        chat_template=template,
                        add_generation_prompt=prompt,
                        bos_token="<s>",
                        eos_token="</s>",
                    )[0][0]
                except Exception as error:
                    print(name, "refuses:", error)
                    text = None
                cases.append(
                    dict(template=name, messages=messages, add_generation_prompt=prompt, text=text)
                )
    chat_template_utils.datetime = Day
    for name, template in TOOL_TEMPLATES.items():
        for messages in TOOL_CONVERSATIONS:
            for tools, variables in (None, {}), (TOOLS, dict(enable_thinking=False)):
                try:
                    text = render_jinja_template(
                        [messages],
                        tools=tools,
                        chat_template=template,
                        add_generation_prompt=tools is None,
                        bos_token="<s>",
                        eos_token="</s>",
                        **variables,
                    )[0][0]
                except Exception as error:
                    print(name, "refuses:", repr(error))
                    text = None
                case = dict(template=name, messages=messages, add_generation_prompt=tools is None, text=text)
                cases.append(case | dict(tools=tools or [], variables=variables))
    chat = dict(templates=TEMPLATES | TOOL_TEMPLATES, cases=cases)
    (HERE / "chat.json").write_text(json.dumps(chat, ensure_ascii=False) + "\n")


def export_ropes():
    cases = []
    for parameters, head_dim in ROPES:
        config = AutoConfig.for_model(
            "llama", hidden_size=head_dim, num_attention_heads=1, max_position_embeddings=131072, rope_parameters=dict(parameters)
        )
        frequencies, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, "cpu")
        cases.append(dict(parameters=parameters, head_dim=head_dim, frequencies=frequencies.tolist(), attention_factor=factor))
    (HERE / "rope.json").write_text(json.dumps(cases, indent=1) + "\n")


def export(name, settings, seed):
    torch.manual_seed(seed)
    settings = dict(settings)
    # What the weights are rounded to, and stored in. Constants are made in f32.
    stored = settings.pop("dtype", torch.float32)
    config = AutoConfig.for_model(settings.pop("model_type", "llama"), **settings)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    # Gemma 3 adds one to the weights of norms, and scales token vectors.
    norm, embedding = (0.0, 0.04) if config.model_type.startswith("gemma") else (1.0, 0.15)
    # Weights of the usual size would leave the layers without effect, and norms of all ones would hide a
    # norm that forgets its weight.
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith("bias"):
                parameter.normal_(std=0.5)
            elif parameter.dim() == 1:
                parameter.copy_(norm + 0.2 * torch.randn_like(parameter))
            elif "embed" in parameter_name:
                parameter.normal_(std=embedding)
            else:
                parameter.normal_(std=1.5 / parameter.shape[1] ** 0.5)
            parameter.copy_(parameter.to(stored).float())
    folder = HERE / name
    weights = {name: weight.to(stored) for name, weight in model.state_dict().items()}
    if config.tie_word_embeddings:
        del weights["lm_head.weight"]
    model.save_pretrained(folder, state_dict=weights)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)

    batch = torch.randint(4, config.vocab_size, (2, 9))
    prompts = [torch.randint(4, config.vocab_size, (n,)) for n in (5, 11, 1)]
    with torch.no_grad():
        logits = model(batch).logits
        model.set_attn_implementation("sdpa")
        off = (model(batch).logits - logits).abs().max()
        assert off < 1e-5, f"{name}: rounding changes logits by {off}; change the seed"
        model.set_attn_implementation("eager")
        last, greedy = [], []
        for prompt in prompts:
            ids = prompt.tolist()
            last.append(model(prompt[None]).logits[0, -1].tolist())
            for _ in range(STEPS):
                scores = model(torch.tensor([ids])).logits[0, -1]
                top = scores.topk(2).values
                assert top[0] - top[1] > 1e-3, f"{name}: a greedy choice is a near tie; change the seed"
                ids.append(int(scores.argmax()))
            greedy.append(ids[len(prompt) :])
            assert stored == torch.float32 or len(set(greedy[-1])) > 8, f"{name}: a monotonous text; change the seed"
    expected = dict(
        batch=batch.tolist(),
        logits=[[[round(x, 7) for x in row] for row in rows] for rows in logits.tolist()],
        prompts=[p.tolist() for p in prompts],
        last=[[round(x, 7) for x in row] for row in last],
        greedy=greedy,
    )
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    print(name, sum(p.numel() for p in model.parameters()), "parameters", greedy[0])


names = sys.argv[1:] or [*MODELS, "rope", "chat"]
for name in names:
    if name == "rope":
        export_ropes()
    elif name == "chat":
        export_chat()
    else:
        for seed in range(100):
            try:
                export(name, MODELS[name], seed)
                break
            except AssertionError as error:
                print(error, "- seed", seed)
