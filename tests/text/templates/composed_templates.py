# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chat templates put together from the parts that those of models have: every
choice of a part is written as some model's template writes it."""

import itertools
import random

SYSTEM = [
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] | trim %}{% set messages = messages[1:] %}"
    "{% else %}{% set system = 'Default.' %}{% endif %}\n",
    "{%- set ns = namespace(system='') -%}\n{%- for m in messages if m.role == 'system' -%}\n"
    "  {%- set ns.system = ns.system ~ ('\\n' if ns.system else '') ~ m.content -%}\n{%- endfor -%}\n"
    "{%- set system = ns.system or none -%}\n",
    "{% set system = (messages | selectattr('role', 'eq', 'system') | list | first | default({'content': none})).content %}\n",
    "{%- set system = messages[0].content if messages and messages[0].role == 'system' else '' %}\n"
    "{%- set messages = messages | rejectattr('role', 'equalto', 'system') | list %}\n",
    "{% set system %}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% break %}{% endif %}{% endfor %}"
    "{% endset %}",
]
TOOLS = [
    "{%- if tools %}\n    {{- '[TOOLS]' ~ tools | tojson ~ '[/TOOLS]' }}\n{%- endif %}\n",
    "{% if tools is not none and tools is iterable %}{% for tool in tools %}{{ tool.function | tojson(indent=2) }}"
    "{{ '\\n' if not loop.last }}{% endfor %}{% endif %}",
    "{%- macro show(schema, level=0) -%}\n{%- for name, value in schema.properties | items -%}\n"
    "{{ '  ' * level }}{{ name }}: {{ value.type if value.type is string else value.type | join('|') }}"
    "{{ ' (' ~ value.enum | join(', ') ~ ')' if value.enum }}\n{{ show(value, level + 1) if value.properties is defined }}"
    "{%- endfor -%}\n{%- endmacro -%}\n{%- for tool in tools or [] -%}\n"
    "{{ loop.index }}/{{ loop.length }} {{ tool['function']['name'] }}\n{{ show(tool.function.parameters) }}\n{%- endfor -%}\n",
    "{% macro wrap(tag, text) %}<{{ tag }}>{{ text | indent(2, true) }}</{{ tag }}>{% endmacro %}"
    "{% if tools %}{{ wrap('tools', tools | map(attribute='function.name') | join('\\n')) }}{% endif %}",
    "",
]
TURN = [
    "{{ '<|' ~ message['role'] ~ '|>\\n' + text + '<|end|>\\n' }}",
    "{%- if message.role == 'user' %}\n[INST] {{ text }} [/INST]\n{%- elif message.role == 'assistant' %}\n"
    " {{ text | trim }} {{ eos_token }}\n{%- elif message.role != 'system' %}\n({{ message.role }}) {{ text }}\n{%- endif %}\n",
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Turn ' ~ loop.index) }}{% endif %}"
    "{{- {'user': 'U', 'assistant': 'A'}.get(message.role, message.role | upper) }}: {{ text }}\n",
    "{%- generation %}{{ text.split('</think>')[-1].lstrip('\\n') }}{% endgeneration -%}"
    "{{ '|' if not loop.last and loop.nextitem.role != message.role else ';' }}",
    "{% if message.role == 'tool' and (loop.first or loop.previtem.role != 'tool') %}<results>{% endif %}"
    "{{ text | replace('\\n', ' ') }}{% filter upper %}{{ message.role[:1] }}{% endfilter %}{{ '-+'[loop.index0 % 2] }}",
]
TEXT = [
    "{%- set text = message.content if message.content is string else message.content | default('', true) | string %}",
    "{%- if message.content is string %}{% set text = message.content %}{% elif message.content is iterable %}"
    "{% set text = message.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join %}"
    "{% else %}{% set text = '' %}{% endif %}",
    "{%- set text %}{{ message.get('content') or '' }}{% endset %}",
]
CALLS = [
    "{%- for call in message.tool_calls or [] %}{{ '<call>' ~ call.function | tojson ~ '</call>' }}{% endfor %}",
    "{%- if 'tool_calls' in message and message['tool_calls'] is not none %}\n    {%- for call in message.tool_calls %}\n"
    "        {%- set arguments = call.function.arguments %}\n"
    "        {{- call.function.name ~ '(' }}\n        {%- if arguments is mapping %}\n"
    "            {%- for key, value in arguments | dictsort %}{{ key }}={{ value | tojson }}{{ ', ' if not loop.last }}"
    "{%- endfor %}\n        {%- else %}\n            {{- arguments }}\n        {%- endif %}\n        {{- ')' }}\n"
    "    {%- endfor %}\n{%- endif %}\n",
    "{%- set calls = message.tool_calls | default([], true) %}{% if calls | length > 1 %}{{ raise_exception('One call') }}"
    "{% endif %}{% for call in calls %}{{ call.id[:9] }}:{{ call['function']['name'] | title }}{% endfor %}",
]
END = [
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
    "{%- if add_generation_prompt -%}\n  <|assistant|>\n  {%- if enable_thinking is defined and not enable_thinking %}\n"
    "<think>\n\n</think>\n  {%- endif -%}\n{%- else -%}\n  {{ eos_token }}\n{%- endif %}\n",
]


def templates(count):
    """`count` templates, the same ones each time: pairs of a name and a text."""
    choices = list(itertools.product(SYSTEM, TOOLS, TEXT, TURN, CALLS, END))
    random.Random(1).shuffle(choices)
    for number, (system, tools, text, turn, calls, end) in enumerate(choices[:count]):
        yield f"composed {number}", (
            f"{{{{ bos_token }}}}{system}{{% if system %}}<|system|>{{{{ system }}}}\n{{% endif %}}{tools}"
            f"{{% for message in messages %}}{text}{turn}{calls}{{% endfor %}}{end}"
        )
