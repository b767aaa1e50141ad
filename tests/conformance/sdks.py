"""The official SDKs before a server under test: without a key, and nothing is asked twice."""

import anthropic
import openai


def openai_at(url, **options):
    return openai.OpenAI(base_url=f"{url}/v1", **{"api_key": "none", "max_retries": 0, **options})


def anthropic_at(url, **options):
    return anthropic.Anthropic(base_url=url, **{"api_key": "none", "max_retries": 0, **options})
