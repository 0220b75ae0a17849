"""Plans as whole JSON answers, and answers that are errors."""
import json

import speak_openai as so
from plan import make
from speak_native import ANTHROPIC
from speak_openai import Said


def whole(said, obj, headers=None):
    said.kind, said.question = "application/json", {**said.question, "stream": False}
    said.items, said.done = [("", obj)], False
    said.headers = headers or {}
    return said


def joined(p, c, kind): return "".join(s.text for s in p.steps if s.choice == c and s.kind == kind)


def calls(p, c):
    out = {}
    for s in p.steps:
        if s.choice == c and s.kind == "tool":
            call = out.setdefault(s.call, {"id": f"call_{s.call}", "type": "function", "function": {"name": s.name, "arguments": ""}})
            call["function"]["arguments"] += s.text
    return list(out.values())


def chat(r):
    engine = r.choice(["openai", "vllm", "sglang", "deepseek", "llamacpp", "openrouter"])
    v, p = so.variant(r, engine), make(r, ("reasoning", "tool", "refusal"), 3)
    said = Said(so.path_of(r, engine, True), {"model": "asked", "messages": [{"role": "user", "content": "hi"}], **({"n": p.n} if p.n > 1 else {}), **({"prediction": {"type": "content", "content": "x"}} if v["prediction"] else {})})
    choices = []
    for c in range(p.n):
        m = {"role": "assistant", "content": joined(p, c, "text") or None}
        if joined(p, c, "reasoning"): m[v["reasoning_key"]] = joined(p, c, "reasoning")
        if joined(p, c, "refusal"): m["refusal"] = joined(p, c, "refusal")
        if calls(p, c): m["tool_calls"] = calls(p, c)
        choices.append({"index": c, "message": m, "logprobs": None, "finish_reason": so.REASONS[p.reasons[c]]})
        if v["matched_stop"]: choices[-1]["matched_stop"] = None
    obj = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1790000000, "model": "acme/kestrel-8b", "choices": choices, "usage": so.usage(r, p, v, p.tokens())}
    if engine == "llamacpp" and p.n == 1: obj["timings"] = so.timings(p, v, p.tokens())
    return whole(said, obj)


def completions(r):
    v, p = so.variant(r, "vllm"), make(r, (), 3)
    said = Said("/v1/completions", {"model": "asked", "prompt": "hi"})
    return whole(said, {"id": "cmpl-1", "object": "text_completion", "model": "acme/kestrel-8b", "choices": [{"index": c, "text": joined(p, c, "text"), "logprobs": None, "finish_reason": so.REASONS[p.reasons[c]]} for c in range(p.n)], "usage": so.usage(r, p, v, p.tokens())})


def anthropic(r):
    p = make(r, ("reasoning", "tool"))
    content = [{"type": "text", "text": joined(p, 0, "text")}] if joined(p, 0, "text") else []
    if joined(p, 0, "reasoning"): content.insert(0, {"type": "thinking", "thinking": joined(p, 0, "reasoning"), "signature": "c3k="})
    content += [{"type": "tool_use", "id": "t1", "name": c["function"]["name"], "input": {"a": 1}} for c in calls(p, 0)]
    cached = min(p.cached or 0, p.prompt - 1)
    u = {"input_tokens": p.prompt - cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached, "output_tokens": p.tokens()}
    return whole(Said("/v1/messages", {"model": "asked", "max_tokens": 64, "messages": []}), {"id": "msg_1", "type": "message", "role": "assistant", "model": "sonata-5", "content": content, "stop_reason": ANTHROPIC[p.reasons[0]], "stop_sequence": None, "usage": u})


def responses(r):
    p = make(r, ("tool",))
    output = [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": joined(p, 0, "text"), "annotations": []}]}]
    output += [{"type": "function_call", "id": "f1", "call_id": "c1", "status": "completed", **c["function"]} for c in calls(p, 0)]
    short = p.reasons[0] == "length"
    u = {"input_tokens": p.prompt, "input_tokens_details": {"cached_tokens": p.cached or 0}, "output_tokens": p.tokens(), "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": p.prompt + p.tokens()}
    return whole(Said("/v1/responses", {"model": "asked", "input": "hi"}), {"id": "resp_1", "object": "response", "created_at": 1790000000, "status": "incomplete" if short else "completed", "error": None,
                 "incomplete_details": {"reason": "max_output_tokens"} if short else None, "model": "orca-2026", "output": output, "usage": u})


def ollama(r):
    p, is_chat = make(r, ("reasoning",)), r.random() < 0.5
    obj = {"model": "wren:3b", "created_at": "2026-09-21T10:00:00.037456Z", "done": True, "done_reason": "length" if p.reasons[0] == "length" else "stop", "total_duration": 412345678, "prompt_eval_count": p.prompt, **({"eval_count": p.tokens()} if p.tokens() else {})}
    said = Said("/api/chat" if is_chat else "/api/generate", {"model": "asked", **({"messages": [{"role": "user", "content": "hi"}]} if is_chat else {"prompt": "hi"})})
    thinking = {"thinking": joined(p, 0, "reasoning")} if joined(p, 0, "reasoning") else {}
    if is_chat: obj["message"] = {"role": "assistant", "content": joined(p, 0, "text"), **thinking}
    else: obj.update(response=joined(p, 0, "text"), **thinking)
    return whole(said, obj)


def tgi(r):
    p = make(r)
    n = len(p.steps) + p.eos[0]
    d = {"finish_reason": "eos_token" if p.reasons[0] == "stop" else "length", "generated_tokens": n, "seed": None, "prefill": [], "tokens": []}
    return whole(Said(r.choice(["/generate", "/"]), {"inputs": "hi", "parameters": {}}), {"generated_text": joined(p, 0, "text"), **({"details": d} if r.random() < 0.5 else {})}, {"x-prompt-tokens": str(p.prompt), "x-generated-tokens": str(n), "x-queue-time": "18", "x-compute-type": "gpu"})


def sglang(r):
    def one(p, ident):
        return {"text": joined(p, 0, "text"), "output_ids": [5] * p.tokens(), "meta_info": {"id": ident, "finish_reason": {"type": "length", "length": 8} if p.reasons[0] == "length" else {"type": "stop", "matched": 2}, "prompt_tokens": p.prompt, "weight_version": "default", "completion_tokens": p.tokens(), "cached_tokens": p.cached or 0}}
    return whole(Said("/generate", {"text": "hi", "sampling_params": {}}), one(make(r), "aa90") if r.random() < 0.7 else [one(make(r), f"b{i}") for i in range(r.randint(1, 3))])


def llamacpp(r):
    p = make(r)
    n = p.tokens()
    return whole(Said("/completion", {"prompt": "hi", "n_predict": 64}), {"index": 0, "content": joined(p, 0, "text"), "tokens": [], "id_slot": 0, "stop": True, "model": "plover", "tokens_predicted": n, "tokens_evaluated": p.prompt, "generation_settings": {}, "prompt": "hi", "truncated": False,
                 "stop_type": "limit" if p.reasons[0] == "length" else "eos", "tokens_cached": 9, "timings": {"cache_n": p.cached or 0, "prompt_n": p.prompt - (p.cached or 0), "predicted_n": n, "prompt_ms": 1.5, "predicted_ms": 2.5}})


def gemini(r):
    p = make(r)
    u = {"promptTokenCount": p.prompt, "candidatesTokenCount": p.tokens(), "totalTokenCount": p.prompt + p.tokens()}
    return whole(Said("/v1beta/models/lumen-3:generateContent?key=k", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}), {"candidates": [{"content": {"parts": [{"text": joined(p, 0, "text")}], "role": "model"}, "finishReason": "MAX_TOKENS" if p.reasons[0] == "length" else "STOP", "index": 0}], "usageMetadata": u, "modelVersion": "lumen-3", "responseId": "r1"})


WHOLE = [chat, chat, chat, completions, anthropic, responses, ollama, tgi, sglang, llamacpp, gemini]

MESSAGE = 'broke "here" é'
ERRORS = {"openai-chat": {"error": {"message": MESSAGE, "type": "rate_limit_error", "param": None, "code": 429}}, "anthropic-messages": {"type": "error", "error": {"type": "overloaded_error", "message": MESSAGE}},
          "tgi-generate": {"error": MESSAGE, "error_type": "overloaded"}, "ollama-chat": {"error": MESSAGE}, "triton-generate": {"error": MESSAGE}}


def refused(r):
    """(status, object): an HTTP error instead of the answer."""
    status = r.choice([400, 401, 404, 413, 422, 429, 500, 503, 529])
    return status, r.choice(list(ERRORS.values()))


def broken(r, said, api):
    """Cuts the items at a random event and says the error as this API does."""
    at = r.randint(0, max(0, len(said.items) - 2))
    del said.items[at:]
    done = said.done and r.random() < 0.6
    said.done = done
    if api == "openai-responses":
        if r.random() < 0.5: said.say({"type": "error", "code": "server_error", "message": MESSAGE, "param": None}, "error")
        else: said.say({"type": "response.failed", "response": {"id": "resp_1", "object": "response", "status": "failed", "error": {"code": "server_error", "message": MESSAGE}, "usage": None}}, "response.failed")
    elif api == "anthropic-messages": said.say(ERRORS[api], "error")
    elif api == "bedrock-converse": said.say({"message": MESSAGE}, "!throttlingException")
    elif api == "lmstudio-chat":
        said.say({"type": "error", "error": {"type": "internal_error", "message": MESSAGE}}, "error")
        if r.random() < 0.5: said.say({"type": "chat.end", "result": {"output": [], "stats": {"input_tokens": 5, "total_output_tokens": 3, "reasoning_output_tokens": 0}}}, "chat.end")
    elif api == "openai-chat" and r.random() < 0.3: said.say({"id": "gen-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}], **({"error": {"code": 502, "message": MESSAGE}} if r.random() < 0.6 else {})})
    elif api == "sglang-generate" and r.random() < 0.3: said.say({"text": "", "output_ids": [], "meta_info": {"id": "e77b", "finish_reason": {"type": "abort", "message": MESSAGE}, "prompt_tokens": 5, "completion_tokens": 0, "cached_tokens": 0}})
    else: said.say(r.choice([ERRORS["openai-chat"], ERRORS["tgi-generate"], ERRORS["triton-generate"]]))
