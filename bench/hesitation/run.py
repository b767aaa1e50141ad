#!/usr/bin/env python3
"""Asks small tasks with checkable answers with and without a hesitation penalty, by turns, with the same seeds.

run.py --url http://localhost:8080/v1 [--model NAME] [--penalty X] [--rounds N] [--key KEY] [--prefill TEXT]
Prints, of both: tokens of thinking an answer, hesitations per 1000 of them, share of right answers; and ratios.
"""

import argparse
import json
import re
import statistics
import sys
import urllib.error
import urllib.request

HESITATION = re.compile(r"\b(?:[Ww]ait|[Hh]mm|Hm|Oops|Actually|Alternatively)\b")

# What is asked, and what the answer's last line is to be.
TASKS = [
    ("What is 17 * 23?", "391"),
    ("What is 1000 - 387 + 45?", "658"),
    ("A shelf has 4 rows of 13 books, and 9 books are lent out. How many are left?", "43"),
    ("Which number comes next: 2, 6, 12, 20, 30?", "42"),
    ("How many minutes are there from 9:47 to 13:05?", "198"),
    ("How often is the letter r in 'refrigerator'?", "4"),
    ("Write 45 in binary.", "101101"),
    ("What does this Python print: print(sum(i for i in range(10) if i % 3 == 0))?", "18"),
    ("What does this Python print: print('abcdef'[::-2])?", "fdb"),
    ("Anna is older than Ben, Ben is older than Carl, Dora is younger than Carl. Who is second oldest?", "ben"),
    ("What is the least common multiple of 12 and 18?", "36"),
    ("Sort these and name the third: pear, fig, apple, plum, date.", "fig"),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="base URL with /v1")
    parser.add_argument("--model", help="the server's first one, unless given")
    parser.add_argument("--key", default="none")
    parser.add_argument("--penalty", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3, help="seeds of each task")
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--template", type=json.loads, default={}, help="chat_template_kwargs, JSON")
    parser.add_argument("--prefill", help="the answer goes on behind this, such as <think>")
    return parser.parse_args()


def fetch(options, path, body=None):
    request = urllib.request.Request(
        options.url.rstrip("/") + path,
        None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {options.key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=1800) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"hesitation: {options.url} answers {error.code}: {error.read().decode()[:300]}")
    except OSError as error:
        sys.exit(f"hesitation: {options.url}: {error}")


def ask(options, question, seed, penalty):
    body = {
        "model": options.model,
        "messages": [{"role": "user", "content": question + " End with a line that is the answer alone."}],
        "seed": seed,
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "hesitation_penalty": penalty,
        "chat_template_kwargs": options.template,
    }
    if options.prefill:
        body["messages"].append({"role": "assistant", "content": options.prefill})
        body["continue_final_message"] = True
        body["add_generation_prompt"] = False
    return fetch(options, "/chat/completions", body)


def is_right(text, wanted):
    lines = [line for line in (text or "").strip().splitlines() if line.strip()]
    return bool(lines) and re.sub(r"[^a-z0-9]", "", lines[-1].lower()) == wanted


def seen_of(answer, wanted):
    message = answer["choices"][0]["message"]
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    details = answer["usage"].get("completion_tokens_details") or {}
    return {
        "tokens": details.get("reasoning_tokens", 0),
        "words": len(HESITATION.findall(thought)),
        "right": is_right(message.get("content"), wanted),
    }


def summary(seen):
    tokens = sum(one["tokens"] for one in seen)
    return {
        "tokens of thinking an answer": statistics.mean(one["tokens"] for one in seen),
        "hesitations per 1000 of them": 1000 * sum(one["words"] for one in seen) / tokens if tokens else 0,
        "share of right answers": sum(one["right"] for one in seen) / len(seen),
    }


def main():
    options = arguments()
    options.model = options.model or fetch(options, "/models")["data"][0]["id"]
    seen = {False: [], True: []}
    for seed in range(options.rounds):
        for index, (question, wanted) in enumerate(TASKS):
            # By turns, and each of them first as often as the other.
            for is_on in [False, True] if (seed + index) % 2 == 0 else [True, False]:
                answer = ask(options, question, seed, options.penalty if is_on else 0)
                for warning in answer.get("warnings") or []:
                    if warning["code"].startswith("hesitation"):
                        sys.exit(f"hesitation: {warning['message']}")
                seen[is_on].append(seen_of(answer, wanted))
    without, penalized = summary(seen[False]), summary(seen[True])
    print(f"{len(seen[True])} answers each, penalty {options.penalty}")
    for what, before in without.items():
        after = penalized[what]
        ratio = f"{after / before:.2f}" if before else "none"
        print(f"{what}: {before:.2f} without, {after:.2f} with; ratio {ratio}")
    if not any(one["tokens"] for one in seen[False]):
        print("the model did not think: nothing is compared")


if __name__ == "__main__":
    main()
