// A model that a script plays: its tokenizer, template and dialect are real, its answers are given.
#pragma once

#include <memory>
#include <string>

#include "app/backend.h"
#include "app/session_options.h"
#include "base/result.h"
#include "chat/local_service.h"
#include "script/player.h"

namespace tandem::app {

class ScriptedSession final : public Backend {
 public:
  /// Of a model's folder only the text side is read: it needs no weights. `--context` may be more
  /// than the model was made for. Errors: what the model or the script lacks.
  static Result<std::unique_ptr<ScriptedSession>> start(const SessionOptions& options,
                                                        const std::string& script_file);

  chat::Service& service() override { return *service_; }
  nlohmann::ordered_json instances() const override;
  std::optional<std::string> unready_reason() const override;
  std::optional<std::string> end_reason() const override { return std::nullopt; }
  void write_metrics(protocol::MetricsText& out) const override;
  bool wait_ready(std::chrono::milliseconds) override { return true; }
  void drain() override { player_->drain(); }
  bool wait_drained(std::chrono::milliseconds time) override;
  void stop() override { player_->stop(); }

 private:
  ScriptedSession() = default;

  std::unique_ptr<script::Player> player_;
  std::unique_ptr<chat::LocalService> service_;  // goes first: no request outlives it
  std::shared_ptr<replay::Memory> turns_;        // null: none are remembered
};

}  // namespace tandem::app
