#!/usr/bin/env python3
"""Writes template_cases.json: small templates with what jinja2, set up as transformers does, makes of them.

Needs jinja2. Time is fixed at 2026-03-07 09:05:03 UTC.
"""
import json
from datetime import datetime, timezone
from pathlib import Path

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 3, 7, 9, 5, 3, tzinfo=timezone.utc)
VALUES = {
    "text": "naïve ☃ <b> & \"q\" 'a' \\ \t", "lines": "one\n\n  two\nthree\n", "none": None, "yes": True, "n": 3,
    "small": 1e-7, "large": 1e20, "half": 0.5, "whole": 2.0, "list": ["a", 1, None, 2.5, {"k": "it's"}],
    "dict": {"b": 1, "a": [1, 2], "items": "shadow", "é": None}, "empty": {}, "nothing": [],
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo", "tool_calls": []}],
}
CASES = {
    "json keeps letters and escapes only what it must": "{{ text | tojson }} {{ dict | tojson }} {{ list | tojson }}",
    "json takes keywords": "{{ dict | tojson(indent=2) }}\n{{ dict | tojson(sort_keys=true) }}\n{{ text | tojson(ensure_ascii=true) }}"
                           "\n{{ list | tojson(separators=(',', ':')) }}\n{{ empty | tojson(indent=4) }}{{ nothing | tojson(indent=4) }}",
    "numbers are spelled as Python does": "{{ small }} {{ large }} {{ half }} {{ whole }} {{ n }} {{ [small, large] | tojson }} {{ 7 // 2 }} {{ 7 / 2 }}",
    "none, booleans and containers print as Python prints them": "{{ none }} {{ yes }} {{ list }} {{ dict }} {{ undefined_name }}|",
    "tests tell iterables and sequences": "{% for v in [none, 'a', [], {}, 1, yes] %}{{ v is iterable }}{{ v is sequence }}{{ v is mapping }}{{ v is string }} {% endfor %}",
    "indent leaves blank lines and keeps the last newline": "{{ lines | indent(4) }}|{{ lines | indent(2, first=true) }}|{{ lines | indent(width=1, blank=true) }}|",
    "default takes keywords": "{{ missing | default('d') }} {{ '' | default('d', boolean=true) }} {{ '' | default('d', true) }} {{ none | default('d') }}",
    "blocks eat the white space around them": "  {% if yes %}\n  a\n  {% endif %}\n  {%- if yes -%}  b  {%- endif %}\nc\n",
    "loops know their neighbours": "{% for m in messages %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.previtem.role if loop.previtem is defined }}"
                                   "{{ loop.nextitem.role if loop.nextitem is defined }};{% endfor %}",
    "loops can be left": "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "namespaces carry values out of loops": "{% set ns = namespace(found=false) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "macros and recursion": "{% macro show(x, d=0) %}{{ d }}{% if x is mapping %}{% for k, v in x.items() %}{{ k }}:{{ show(v, d + 1) }}{% endfor %}{% else %}={{ x }}{% endif %}{% endmacro %}{{ show({'a': {'b': 1}}) }}",
    "dict methods win over keys": "{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}{{ dict.get('b') }}{{ dict.get('zz', 'no') }}{{ dict['items'] }}",
    "dictsort and items": "{{ dict | dictsort }} {% for k, v in dict | items %}{{ k }}{% endfor %}",
    "string methods": "{{ '  x '.strip() }}|{{ 'a-b-c'.split('-') }}|{{ 'a-b-c'.rsplit('-', 1) }}|{{ 'abc'.removeprefix('a').removesuffix('c') }}|{{ '7'.zfill(3) }}|{{ 'x'.ljust(3, '.') }}"
                      "|{{ 'x'.rjust(3) }}|{{ 'ab'.center(5, '*') }}|{{ 'k=v'.partition('=')[2] }}|{{ 'hello'.index('l') }}|{{ 'hello world'.title() }}|{{ 'aXbX'.replace('X', '') }}"
                      "|{{ 'abc'.startswith('ab') }}|{{ 'a b  c'.split() }}|{{ '\\n\\nx'.lstrip('\\n') }}|{{ 'ab'.upper() }}",
    "lists and slices": "{{ messages[1:] | length }} {{ messages[-1].role }} {{ messages[::-1][0].role }} {{ (list + [9]) | length }} {{ 'a' in list }} {{ list | first }} {{ [3, 1, 2] | sort }} {{ ['a', 'b'] | join(', ') }}",
    "filters over lists": "{{ messages | map(attribute='role') | list }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('tool_calls', 'defined') | list | length }}",
    "dict from pairs": "{{ dict([['x', 1], ['y', 2]]) }} {{ dict(a=1) }}",
    "dates": "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%A %B %-d %H:%M:%S') }}",
    "the training marker is a plain block": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "line ends": "a\r\n{% if yes %}\r\nb\r\n{% endif %}\r\nc",
    "string filter and concatenation": "{{ (1.0 | string) + 'x' }} {{ 1 ~ 'a' ~ none ~ yes }} {{ list | string | length }}",
    "a template may refuse": "{{ raise_exception('Only ' ~ n ~ ' messages, please.') }}",
    "an attribute of nothing is an error": "{{ missing.field.deeper }}",
    "adding text and a number is an error": "{{ 'a' + 1 }}",
}


def environment():
    def raise_exception(message):
        raise TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def run(source):
    reference = source.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    try:
        return {"text": environment().from_string(reference).render(**VALUES)}
    except TemplateError as error:
        raised = type(error) is TemplateError
        return {"raised": str(error)} if raised else {"error": str(error)}
    except TypeError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    cases = [{"name": name, "template": source, **run(source)} for name, source in CASES.items()]
    out = {"values": VALUES, "cases": cases}
    path = Path(__file__).parent / "template_cases.json"
    path.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
