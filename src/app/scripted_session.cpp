#include "app/scripted_session.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "app/model_info.h"
#include "app/model_path.h"
#include "app/replay_options.h"
#include "app/session.h"
#include "app/system.h"
#include "chat/model_dialect.h"
#include "format/checkpoint.h"
#include "text/checkpoint_text.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kDefaultContext = 131072;

struct Model {
  text::ModelText text;
  chat::ModelInfo info;
};

Result<std::string> read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad())
    return Error{ErrorCode::kNotFound, fmt::format("cannot read {}", path.string())};
  return text;
}

/// The text side of a folder, or of a .gguf file.
Result<Model> read_model(const fs::path& path) {
  if (!fs::is_directory(path)) {
    const auto checkpoint = format::open_checkpoint(path);
    if (!checkpoint) return checkpoint.error();
    auto text = text::load_model_text(**checkpoint);
    if (!text) return text.error();
    return Model{std::move(*text), model_info(**checkpoint, 0)};
  }
  nlohmann::json config = nlohmann::json::object();
  if (const auto file = read_text(path / "config.json"))
    config = nlohmann::json::parse(*file, nullptr, false);
  if (!config.is_object())
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is not a JSON object", (path / "config.json").string())};
  auto text = text::load_folder_text(path, config);
  if (!text) return text.error();
  return Model{std::move(*text), model_info(config, 0)};
}

void set_context(chat::ModelInfo& info, uint32_t context) {
  if (info.native_context == 0) info.native_context = kDefaultContext;
  info.max_context = context == 0 ? info.native_context : context;
  info.max_output = info.max_context;
}

}  // namespace

Result<std::unique_ptr<ScriptedSession>> ScriptedSession::start(const SessionOptions& options,
                                                                const std::string& script_file) {
  const auto script_text = read_text(script_file);
  if (!script_text) return script_text.error();
  auto script = script::Script::parse(*script_text);
  if (!script)
    return Error{script.error().code, fmt::format("{}: {}", script_file, script.error().message)};
  const auto path = find_model(options.model.name);
  if (!path) return path.error();
  auto model = read_model(path->path);
  if (!model) return model.error();
  text::ModelText& text = model->text;
  if (!options.reasoning_dialect.empty())
    text.thinking = text::thinking_markers_named(options.reasoning_dialect);
  chat::ModelInfo& info = model->info;
  info.id = path->id;
  info.created = modified_at(path->path);
  info.vocab = static_cast<uint32_t>(text.tokenizer->size());
  info.has_chat_template = text.chat_template != nullptr;
  set_context(info, options.context);

  std::unique_ptr<ScriptedSession> session(new ScriptedSession());
  session->player_ = std::make_unique<script::Player>(
      std::move(*script), text, chat::dialect_of(text, options.tool_dialect), info.max_context);
  chat::LocalServiceOptions service = service_options(options);
  service.on_choice = [player = session->player_.get()](const chat::Request& request,
                                                        gen::RequestId id) {
    player->announce(request, id);
  };
  session->service_ = std::make_unique<chat::LocalService>(*session->player_, text, info, service);
  session->turns_ = options.turns;
  return session;
}

nlohmann::ordered_json ScriptedSession::instances() const {
  return nlohmann::ordered_json::array(
      {{{"name", "script"},
        {"scripted", true},
        {"state", player_->is_draining() ? "draining" : "ready"},
        {"ranks", nlohmann::ordered_json::array()},
        {"engine", {{"running", player_->running()}, {"waiting", 0}, {"paused", 0}}}}});
}

std::optional<std::string> ScriptedSession::unready_reason() const {
  return player_->is_draining() ? std::optional<std::string>("draining") : std::nullopt;
}

void ScriptedSession::write_metrics(protocol::MetricsText& out) const {
  if (turns_) app::write_metrics(out, *turns_);
}

bool ScriptedSession::wait_drained(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (player_->running() > 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace tandem::app
