"""Requests that are put to both servers, what the model says to each, and why the answers differ where they do.

A case's `says` is what the model writes, markers and all, up to the end of its answer. `differs` explains, by the name of
what was compared, each difference that there must be: one that is not explained is a failure, and so is an explanation
without a difference."""

import dataclasses

GET_TIME = {
    "type": "function",
    "function": {"name": "get_time", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def call(city, name="get_time"):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"city": "{city}"}}}}\n</tool_call>'


@dataclasses.dataclass
class Case:
    name: str
    says: str
    tools: list = dataclasses.field(default_factory=list)
    fields: dict = dataclasses.field(default_factory=dict)
    prompt: bool = False  # a text completion
    differs: dict = dataclasses.field(default_factory=dict)


KEEPS_HELD = (
    "what was held back in case it begins a marker or a stop string is text when nothing follows; there it is lost"
)
DROPPED = "a damaged call is text, or closed with what came; there it is dropped, and the turn is empty"
PROSE = "a marker in prose is text, and so is what follows; there the answer's rest is taken for a call and dropped"
NO_TOOLS = "nothing is a call where no tools were offered; there it is one all the same"
CUT_CALL = "the arguments of a call that the limit cuts off are closed with what came; there the call is dropped"
STOP_IN_WORD = (
    "stop strings are matched on text, wherever tokens are cut; there this one is removed and the answer goes on"
)
DETAIL = "says that a call was cut off, and which guards acted"
UNCLOSED = "there the opening marker shows in a thought that nothing closes"
RAW_TEXT = "a text completion is all text; there thinking vanishes from it"

CASES = [
    Case("text", "Hello, world."),
    Case("empty", ""),
    Case("lines and characters", "café\n\n  naïve 🎉 日本\n"),
    Case("thinking", "<think>Hm, 1 < 2.</think>Yes."),
    Case("thinking only", "<think>Hm.</think>"),
    Case("unclosed thinking", "<think>Hm", differs={"thinking": UNCLOSED}),
    Case("call", call("Oslo"), [GET_TIME]),
    Case("text and call", "Let me see." + call("Oslo"), [GET_TIME]),
    Case("two calls", call("Oslo") + call("Bergen"), [GET_TIME]),
    Case("thinking and call", "<think>Which?</think>" + call("Oslo"), [GET_TIME]),
    Case("call with characters", call("Tromsø 🎉"), [GET_TIME]),
    Case(
        "damaged call",
        '<tool_call>{"name": "get_time", "arg</tool_call>',
        [GET_TIME],
        differs={"text": DROPPED, "finish_reason": DROPPED},
    ),
    Case(
        "call without tools",
        call("Oslo"),
        differs={"text": NO_TOOLS, "calls": NO_TOOLS, "finish_reason": NO_TOOLS},
    ),
    Case(
        "marker in prose",
        "The `<tool_call>` tag is for calls.",
        [GET_TIME],
        differs={"text": PROSE, "finish_reason": PROSE},
    ),
    Case("half a marker at the end", "a <tool", [GET_TIME], differs={"text": KEEPS_HELD}),
    Case("cut in a text", "one two three four", fields={"max_tokens": 3}),
    Case("cut in thinking", "<think>one two three</think>four", fields={"max_tokens": 3}),
    Case("cut in a call's head", call("Oslo"), [GET_TIME], fields={"max_tokens": 30}),
    Case("cut in a call", call("Oslo"), [GET_TIME], fields={"max_tokens": 44}, differs={"calls": CUT_CALL}),
    Case("stop", "one\nUser: two", fields={"stop": ["\nUser:"]}),
    Case(
        "stop inside a word",
        "hello world and more",
        fields={"stop": ["orl"]},
        differs={"text": STOP_IN_WORD, "completion_tokens": STOP_IN_WORD},
    ),
    Case("half a stop at the end", "hello wor", fields={"stop": ["world"]}, differs={"text": KEEPS_HELD}),
    Case("logprobs", "ab", fields={"logprobs": True, "top_logprobs": 2}),
    Case("text completion", "and so on.", prompt=True),
    Case("text completion with markers", "<think>a</think>b", prompt=True, differs={"text": RAW_TEXT}),
]

BOTH_NAMES = "thinking has both names by which clients look for it"
AS_OPENAI = "as in OpenAI's answers"
STREAMED_LOGPROBS = "logprobs come in streams too; there never"
IDS = "of no client's interest: token ids are told by /tokenize"

# Fields that only one of the two sends: whole answers and streams apart, by their place.
FIELDS = {
    "ours": {
        "stream choices[].delta.reasoning_content": BOTH_NAMES,
        "whole choices[].message.reasoning_content": BOTH_NAMES,
        "stream choices[].logprobs": AS_OPENAI,
        "whole choices[].logprobs": AS_OPENAI,
        "whole choices[].message.refusal": AS_OPENAI,
        "stream choices[].logprobs.refusal": STREAMED_LOGPROBS,
        "whole choices[].logprobs.refusal": AS_OPENAI,
        "whole choices[].logprobs.content[].bytes[]": AS_OPENAI,
        "whole choices[].logprobs.content[].top_logprobs[].bytes[]": AS_OPENAI,
        "stream choices[].logprobs.content[].bytes[]": STREAMED_LOGPROBS,
        "stream choices[].logprobs.content[].logprob": STREAMED_LOGPROBS,
        "stream choices[].logprobs.content[].token": STREAMED_LOGPROBS,
        "stream choices[].logprobs.content[].top_logprobs[].bytes[]": STREAMED_LOGPROBS,
        "stream choices[].logprobs.content[].top_logprobs[].logprob": STREAMED_LOGPROBS,
        "stream choices[].logprobs.content[].top_logprobs[].token": STREAMED_LOGPROBS,
        "stream choices[].finish_detail[]": DETAIL,
        "whole choices[].finish_detail[]": DETAIL,
        "stream usage": "null in chunks before the one that has it, as in OpenAI's",
        "stream usage.completion_tokens_details.reasoning_tokens": "counts thinking",
        "whole usage.completion_tokens_details.reasoning_tokens": "counts thinking",
    },
    "theirs": {
        "whole choices[].logprobs.content[].id": IDS,
        "whole choices[].logprobs.content[].top_logprobs[].id": IDS,
    },
}
