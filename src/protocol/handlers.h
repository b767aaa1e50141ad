// Every handler of routes.inc.
#pragma once

#include <memory>

#include "net/reply.h"
#include "net/request.h"
#include "protocol/api.h"

namespace tandem::protocol {

using ReplyPtr = std::shared_ptr<net::Reply>;

void greet(Api& api, const net::Request& request, const ReplyPtr& reply);
void health(Api& api, const net::Request& request, const ReplyPtr& reply);
void live(Api& api, const net::Request& request, const ReplyPtr& reply);
void ready(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_status(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_metrics(Api& api, const net::Request& request, const ReplyPtr& reply);
void list_models(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_model(Api& api, const net::Request& request, const ReplyPtr& reply);
void list_requests(Api& api, const net::Request& request, const ReplyPtr& reply);
void stop_request(Api& api, const net::Request& request, const ReplyPtr& reply);
void tokenize(Api& api, const net::Request& request, const ReplyPtr& reply);
void detokenize(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_openapi(Api& api, const net::Request& request, const ReplyPtr& reply);
void apply_template(Api& api, const net::Request& request, const ReplyPtr& reply);

namespace openai {

void chat_completions(Api& api, const net::Request& request, const ReplyPtr& reply);
void completions(Api& api, const net::Request& request, const ReplyPtr& reply);
void embeddings(Api& api, const net::Request& request, const ReplyPtr& reply);
void responses(Api& api, const net::Request& request, const ReplyPtr& reply);
void create_conversation(Api& api, const net::Request& request, const ReplyPtr& reply);
void create_conversation_items(Api& api, const net::Request& request, const ReplyPtr& reply);
void delete_conversation(Api& api, const net::Request& request, const ReplyPtr& reply);
void delete_conversation_item(Api& api, const net::Request& request, const ReplyPtr& reply);
void list_conversation_items(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_conversation(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_conversation_item(Api& api, const net::Request& request, const ReplyPtr& reply);
void update_conversation(Api& api, const net::Request& request, const ReplyPtr& reply);
void cancel_response(Api& api, const net::Request& request, const ReplyPtr& reply);
void count_input_tokens(Api& api, const net::Request& request, const ReplyPtr& reply);
void delete_response(Api& api, const net::Request& request, const ReplyPtr& reply);
void list_input_items(Api& api, const net::Request& request, const ReplyPtr& reply);
void show_response(Api& api, const net::Request& request, const ReplyPtr& reply);

}  // namespace openai

namespace anthropic {

void messages(Api& api, const net::Request& request, const ReplyPtr& reply);
void count_tokens(Api& api, const net::Request& request, const ReplyPtr& reply);

}  // namespace anthropic

namespace ollama {

void chat(Api& api, const net::Request& request, const ReplyPtr& reply);
void generate(Api& api, const net::Request& request, const ReplyPtr& reply);
void list_loaded(Api& api, const net::Request& request, const ReplyPtr& reply);
void list_tags(Api& api, const net::Request& request, const ReplyPtr& reply);
void show(Api& api, const net::Request& request, const ReplyPtr& reply);
void version(Api& api, const net::Request& request, const ReplyPtr& reply);

}  // namespace ollama
}  // namespace tandem::protocol
