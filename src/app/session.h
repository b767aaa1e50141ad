// A model that runs: its rank processes, and the service that talks text with them.
#pragma once

#include <memory>

#include "app/backend.h"
#include "app/model_path.h"
#include "app/session_options.h"
#include "base/result.h"
#include "chat/local_service.h"
#include "control/instance_generator.h"
#include "text/checkpoint_text.h"
#include "topology/split_choice.h"

namespace tandem::app {

class Session final : public Backend {
 public:
  /// Reads the model's text side and starts its ranks; does not wait for them. Errors: what the
  /// model lacks.
  static Result<std::unique_ptr<Session>> start(const SessionOptions& options);

  /// Waits for them too. Errors: kUnavailable with the ranks' last trouble.
  static Result<std::unique_ptr<Session>> start_ready(const SessionOptions& options);

  /// Ends all ranks.
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  chat::Service& service() override { return *service_; }
  nlohmann::ordered_json instances() const override;
  std::optional<std::string> unready_reason() const override;
  std::optional<std::string> end_reason() const override;
  void write_metrics(protocol::MetricsText& out) const override;
  bool wait_ready(std::chrono::milliseconds time) override { return generator_->wait_ready(time); }
  void drain() override { generator_->drain(); }
  void stop() override { generator_->stop(); }
  bool wait_drained(std::chrono::milliseconds time) override {
    return generator_->wait_drained(time);
  }

  control::InstanceGenerator& generator() { return *generator_; }
  const text::ModelText& text() const { return text_; }
  /// How the ranks share the model, and why.
  const topology::SplitChoice& split() const { return split_; }

 private:
  Session(text::ModelText text,
          std::unique_ptr<control::InstanceGenerator> generator,
          chat::ModelInfo info,
          topology::SplitChoice split,
          const SessionOptions& options);

  const text::ModelText text_;
  const topology::SplitChoice split_;
  const std::shared_ptr<replay::Memory> turns_;  // null: none are remembered
  std::unique_ptr<control::InstanceGenerator> generator_;
  std::unique_ptr<chat::Service> service_;
};

/// What of the options is the service's, whatever makes its tokens.
chat::LocalServiceOptions service_options(const SessionOptions& options);

}  // namespace tandem::app
