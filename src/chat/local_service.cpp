#include "chat/local_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "chat/answer.h"
#include "chat/conversation.h"
#include "chat/guard_tool_loop.h"
#include "chat/hesitation.h"
#include "chat/thinking_close.h"

namespace tandem::chat {
namespace {

uint64_t device_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

Error invalid(std::string message, std::string field) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message), .field = std::move(field)};
}

LocalServiceOptions with_defaults(LocalServiceOptions options) {
  if (!options.draw_seed) options.draw_seed = device_seed;
  return options;
}

/// Empty when the model marks no thinking.
std::vector<gen::TokenId> encoded_close(const text::ModelText& model,
                                        const dialect::Dialect& dialect,
                                        const std::string& wrap_up) {
  const std::string close = thinking_close(model, dialect);
  if (close.empty()) return {};
  auto ids = model.tokenizer->encode((wrap_up.empty() ? "" : "\n\n" + wrap_up) + close, false);
  return ids ? std::move(*ids) : std::vector<gen::TokenId>();
}

/// 20 letters and digits, from two draws: nobody guesses a call's id.
std::string call_id(const std::function<uint64_t()>& draw) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string id = "call_";
  for (int half = 0; half < 2; ++half) {
    uint64_t bits = draw();
    for (int i = 0; i < 10; ++i, bits /= kLetters.size()) id += kLetters[bits % kLetters.size()];
  }
  return id;
}

}  // namespace

/// One request: its choices, and the order of its events.
class LocalService::Call : public std::enable_shared_from_this<Call> {
 public:
  /// `generation` is what every choice asks for, but for its ids.
  Call(const std::shared_ptr<const AnswerRules>& rules,
       gen::Request generation,
       uint32_t choices,
       const TurnRecorder::Settings& recording,
       std::shared_ptr<Generations> generations,
       Sink sink)
      : generation_(std::move(generation)),
        generations_(std::move(generations)),
        sink_(std::move(sink)),
        started_(SteadyClock().now()),
        running_(choices) {
    for (uint32_t i = 0; i < choices; ++i) {
      choices_.emplace_back(rules, recording.of_choice(i), generations_->new_id());
    }
  }

  /// Called before each generation is submitted, with its id.
  void on_submit(std::function<void(gen::RequestId)> on_submit) {
    on_submit_ = std::move(on_submit);
  }

  /// Called once, at the last choice's last event.
  void on_end(std::function<void(const Call*)> on_end) { on_end_ = std::move(on_end); }

  /// Submits every choice, or none; events are delivered from here on.
  Status submit() {
    for (uint32_t index = 0; index < choices_.size(); ++index) {
      Choice& choice = choices_[index];
      const Status accepted = submit(index, choice.generation, {{}, choice.answer.bias()});
      if (accepted) continue;
      cancel();
      return accepted;
    }
    open();
    if (cancelled_) cancel();
    return {};
  }

  /// Ends every choice, also those that are still to be submitted. Sinks may call it, which are
  /// called under the lock.
  void cancel() {
    cancelled_ = true;
    for (const Choice& choice : choices_) generator().cancel(choice.generation);
  }

 private:
  struct Choice {
    Choice(std::shared_ptr<const AnswerRules> rules,
           TurnRecorder::Settings recording,
           gen::RequestId id)
        : answer(std::move(rules)), recorder(std::move(recording)), generation(id) {}

    Answer answer;                           // guarded by mutex_
    TurnRecorder recorder;                   // as well
    std::atomic<gen::RequestId> generation;  // whose events count
  };

  gen::Generator& generator() { return generations_->generator(); }

  Status submit(uint32_t index, gen::RequestId id, Answer::Detour from) {
    gen::Request request = generation_;
    request.id = id;
    request.sampling.choice = index;
    request.emitted = std::move(from.tokens);
    auto& bias = request.sampling.logit_bias;
    bias.insert(bias.end(), from.bias.begin(), from.bias.end());
    if (request.deadline && !request.emitted.empty()) {
      const auto spent = SteadyClock().now() - started_;
      *request.deadline =
          std::max(*request.deadline - std::chrono::duration_cast<std::chrono::milliseconds>(spent),
                   std::chrono::milliseconds(1));
    }
    if (on_submit_) on_submit_(id);
    return generator().submit(std::move(request),
                              [call = shared_from_this(), index, id](const gen::Event& event) {
                                call->take(index, id, event);
                              });
  }

  /// An event of a choice's generation. Events wait until open().
  void take(uint32_t index, gen::RequestId id, const gen::Event& event) {
    std::optional<Answer::Detour> detour;
    bool stopped = false;
    bool ended = false;
    {
      const std::lock_guard lock(mutex_);
      Choice& choice = choices_[index];
      Answer& answer = choice.answer;
      if (answer.done() || choice.generation != id) return;
      for (EventBody& body : answer.take(event)) {
        choice.recorder.take(body, answer.tokens());
        deliver({index, std::move(body)});
      }
      detour = answer.take_detour();
      if (detour) choice.generation = generations_->new_id();
      stopped = answer.done() && !event.is_last();
      ended = answer.done() && --running_ == 0;
    }
    if (detour) take_detour(index, id, std::move(*detour));
    if (stopped) generator().cancel(id);
    if (ended) on_end_(this);
  }

  /// The choice goes on from there. Sinks may not submit, so another thread does.
  void take_detour(uint32_t index, gen::RequestId before, Answer::Detour from) {
    const auto go_on = [call = shared_from_this(), index, before, from = std::move(from)] {
      const gen::RequestId id = call->choices_[index].generation;
      const Status accepted = call->submit(index, id, from);
      // Only now: a server that drains is never without the request.
      call->generator().cancel(before);
      if (!accepted) call->take(index, id, {id, gen::Failed{accepted.error()}});
      if (call->cancelled_) call->generator().cancel(id);
    };
    if (generations_->post(go_on)) return;
    const Error gone{ErrorCode::kUnavailable, "the service has ended"};
    const gen::RequestId id = choices_[index].generation;
    take(index, id, {id, gen::Failed{gone}});
  }

  /// Every choice is accepted: delivers what waited.
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    for (Event& event : std::exchange(early_, {})) sink_(std::move(event));
  }

  void deliver(Event event) {
    if (open_) {
      sink_(std::move(event));
    } else {
      early_.push_back(std::move(event));
    }
  }

  const gen::Request generation_;
  const std::shared_ptr<Generations> generations_;
  const Sink sink_;
  std::function<void(gen::RequestId)> on_submit_;
  std::function<void(const Call*)> on_end_;
  const TimePoint started_;

  std::deque<Choice> choices_;
  std::atomic<bool> cancelled_ = false;

  std::mutex mutex_;  // guards what follows
  std::vector<Event> early_;
  size_t running_;
  bool open_ = false;
};

/// The requests that run, by their public names.
class LocalService::Calls {
 public:
  /// False when the name is taken.
  bool add(const std::string& id, std::shared_ptr<Call> call) {
    const std::lock_guard lock(mutex_);
    return calls_.try_emplace(id, std::move(call)).second;
  }

  void remove(const std::string& id, const Call* call) {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(id);
    if (found != calls_.end() && found->second.get() == call) calls_.erase(found);
  }

  /// Null when it is not there.
  std::shared_ptr<Call> find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Call>> calls_;
};

LocalService::LocalService(gen::Generator& generator,
                           text::ModelText model_text,
                           ModelInfo info,
                           LocalServiceOptions options)
    : generator_(generator),
      text_(std::move(model_text)),
      info_(std::move(info)),
      options_(with_defaults(std::move(options))),
      dialect_(dialect_of(text_, options_.tool_dialect)),
      thinking_close_(encoded_close(text_, dialect_, options_.thinking_wrap_up)),
      hesitations_(hesitation_tokens(*text_.tokenizer)),
      compiler_(std::make_unique<grammar::Compiler>(
          [tokenizer = text_.tokenizer, eos = text_.eos]() -> Result<grammar::Vocabulary> {
            const auto size = static_cast<uint32_t>(tokenizer->size());
            return grammar::Vocabulary{.tokenizer = tokenizer, .eos = eos, .logits = size};
          },
          grammar::CompilerOptions{.most_running = 2})),
      replay_(text_, dialect_, options_.memory, options_.handle_key),
      known_(std::make_shared<replay::KnownPrompts>()),
      calls_(std::make_shared<Calls>()),
      generations_(std::make_shared<Generations>(generator)),
      embedder_(generator, [all = generations_] { return all->new_id(); }) {
  if (options_.prepares_grammars) compiler_->prepare();
}

LocalService::~LocalService() { generations_->stop(); }

Result<Accepted> LocalService::submit(Request request, Sink sink) {
  if (auto valid = check(request); !valid) return valid.error();
  auto prompt = make_prompt(request, true);
  if (!prompt) return prompt.error();
  if (auto fits = check_fits(*prompt); !fits) return fits.error();
  auto bound = answer_grammar(request, grammar_place(request, prompt->in_thinking));
  if (!bound) return bound.error();

  gen::Request generation = to_generation(request, *prompt);
  generation.grammar = *std::move(bound);
  const auto rules = make_rules(request, *prompt, generation);
  TurnRecorder::Settings recording = this->recording(request, *prompt);
  Accepted out{.prompt_tokens = static_cast<uint32_t>(prompt->ids.size()),
               .divergence = divergence(request, *prompt, recording)};
  const auto call = std::make_shared<Call>(rules, std::move(generation), request.choices, recording,
                                           generations_, std::move(sink));
  if (options_.on_choice) {
    call->on_submit([request, tell = options_.on_choice](gen::RequestId id) { tell(request, id); });
  }
  call->on_end([calls = calls_, id = request.id](const Call* ended) { calls->remove(id, ended); });
  if (!calls_->add(request.id, call)) {
    return Error{.code = ErrorCode::kConflict,
                 .message = fmt::format("a request with id \"{}\" is running", request.id),
                 .field = "id"};
  }
  if (const Status accepted = call->submit(); !accepted) {
    calls_->remove(request.id, call.get());
    return accepted.error();
  }
  return out;
}

std::shared_ptr<const AnswerRules> LocalService::make_rules(const Request& request,
                                                            const Prompt& prompt,
                                                            const gen::Request& generation) const {
  auto rules = std::make_shared<AnswerRules>();
  rules->tokenizer = text_.tokenizer;
  rules->stop_ids = text_.eos;
  rules->ignore_eos = request.ignore_eos;
  const auto parsing = parser_rules(std::get_if<Conversation>(&request.input), dialect_, text_,
                                    !request.ignore_eos, gap_before_form(request, text_));
  if (request.form.kind != AnswerForm::Kind::kAny) {
    // The form may say what elsewhere would begin a thought.
    parsing->thinks_once = true;
    if (!grammar_place(request, prompt.in_thinking).may_think) parsing->thinking.reset();
  }
  rules->parsing = parsing;
  rules->markers = rules->parsing->markers();
  rules->stops = std::make_shared<const StopRules>(request.stop, rules->markers);
  rules->draw_call_id = [draw = options_.draw_seed] { return call_id(draw); };
  rules->first_channel = prompt.in_thinking ? Channel::kThinking : Channel::kText;
  rules->logprobs = request.logprobs.has_value();
  rules->prompt_tokens = static_cast<uint32_t>(prompt.ids.size());
  rules->max_tokens = generation.max_tokens;
  rules->is_bound = generation.grammar.has_value();
  const auto* talk = std::get_if<Conversation>(&request.input);
  rules->only_calls = talk != nullptr && talk->calls.is_required;
  rules->ends_whole = rules->only_calls || request.form.kind != AnswerForm::Kind::kAny;
  if (prompt.is_conversation && !request.ignore_eos) {
    rules->guards = request.guards;
    if (loop_of(request) > 0) rules->acted = {Guard::kToolLoop};
    rules->thinking_close = thinking_close_;
    rules->thinking_bias = thinking_bias(request);
  }
  return rules;
}

std::vector<gen::LogitBias> LocalService::thinking_bias(const Request& request) const {
  std::vector<gen::LogitBias> out;
  if (!(request.guards.hesitation_penalty > 0) || thinking_close_.empty()) return out;
  const auto vocab = int64_t{this->vocab()};
  for (const gen::TokenId id : hesitations_) {
    if (id < vocab) out.push_back({.id = id, .bias = -request.guards.hesitation_penalty});
  }
  return out;
}

Result<uint32_t> LocalService::count_prompt(const Request& request) const {
  auto prompt = make_prompt(request, false);
  if (!prompt) return prompt.error();
  return static_cast<uint32_t>(prompt->ids.size());
}

std::vector<Warning> LocalService::warnings(const Request& request) const {
  std::vector<Warning> out;
  const auto* conversation = std::get_if<Conversation>(&request.input);
  if (conversation == nullptr || text_.chat_template == nullptr) return out;
  const auto ignores = [&](std::string_view word) { return !text_.chat_template->mentions(word); };
  if (conversation->tools.is_array() && !conversation->tools.empty() && ignores("tools")) {
    out.push_back({.code = "tools_not_in_template",
                   .message = fmt::format("the model's chat template has no place for tools: they "
                                          "were described in the system message (dialect {})",
                                          dialect_.name)});
  }
  if (request.guards.hesitation_penalty > 0 && thinking_bias(request).empty()) {
    out.push_back({.code = "hesitation_penalty_without_effect",
                   .message = thinking_close_.empty()
                                  ? "the model marks no thinking, in which words of hesitation "
                                    "could be told"
                                  : "the model's vocabulary has no words of hesitation"});
  }
  const size_t lost =
      replay_.thoughts_not_found(*conversation, request.salt, !ignores("developer"));
  if (lost > 0) {
    out.push_back({.code = "thought_not_found",
                   .message = fmt::format("{} of the thoughts came as handles alone (signature, "
                                          "encrypted_content, redacted_thinking) that are not of "
                                          "this server and key, are too old, or came with another "
                                          "answer: the model is shown nothing in their place",
                                          lost)});
  }
  for (const auto& [name, value] : conversation->template_arguments.items()) {
    // Wires set two by their own switches, whatever the model; the budget is kept here.
    if (name == "enable_thinking" || name == "reasoning_effort" || name == "thinking_budget" ||
        !ignores(name)) {
      continue;
    }
    out.push_back({.code = "unknown_template_argument",
                   .message = fmt::format("the model's chat template does not read \"{}\"",
                                          name.substr(0, 80))});
  }
  return out;
}

bool LocalService::cancel(const std::string& id) {
  const auto call = calls_->find(id);
  if (call == nullptr) return embedder_.cancel(id);
  call->cancel();
  return true;
}

Result<uint64_t> LocalService::embed(EmbeddingRequest request, EmbeddingSink sink) {
  const uint32_t hidden = generator_.limits().hidden;  // 0: not known yet
  if (request.dimensions && hidden != 0 && *request.dimensions > hidden)
    return invalid(
        fmt::format("'dimensions' must be from 1 to {}, not {}", hidden, *request.dimensions),
        "dimensions");
  std::vector<std::vector<gen::TokenId>> prompts;
  uint64_t tokens = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::string field = request.inputs.size() == 1 ? "input" : fmt::format("input[{}]", i);
    auto prompt = encode_input(request.inputs[i], field);
    if (!prompt) return prompt.error();
    tokens += prompt->size();
    prompts.push_back(*std::move(prompt));
  }
  const Status taken = embedder_.start(std::move(request), std::move(prompts), std::move(sink));
  if (!taken) return taken.error();
  return tokens;
}

/// As a prompt that may fill the context, since no answer follows.
Result<std::vector<gen::TokenId>> LocalService::encode_input(const RawPrompt& input,
                                                             const std::string& field) const {
  auto prompt = raw_prompt(input);
  if (!prompt) {
    Error error = prompt.error();
    error.field = field;
    return error;
  }
  const uint32_t context = max_context();
  if (context == 0) return Error{ErrorCode::kUnavailable, "the model's context is not known yet"};
  if (prompt->ids.size() > context)
    return Error{.code = ErrorCode::kTooLarge,
                 .message = fmt::format("{} is too long: {} tokens > {} maximum", field,
                                        prompt->ids.size(), context),
                 .field = field};
  return std::move(prompt->ids);
}

Status LocalService::check(const Request& request) const {
  if (request.choices == 0) return invalid("at least one choice must be asked for", "n");
  if (request.max_tokens && *request.max_tokens == 0) {
    return invalid("at least one token must be asked for", "max_tokens");
  }
  const auto vocab = int64_t{this->vocab()};
  for (const gen::LogitBias& bias : request.sampling.logit_bias) {
    if (bias.id < 0 || bias.id >= vocab) {
      return invalid(fmt::format("token {} is not in the vocabulary of {}", bias.id, vocab),
                     "logit_bias");
    }
  }
  return {};
}

Status LocalService::check_ids(const std::vector<gen::TokenId>& ids, const char* field) const {
  const auto vocab = int64_t{this->vocab()};
  const auto outside =
      std::ranges::find_if(ids, [&](gen::TokenId id) { return id < 0 || id >= vocab; });
  if (outside == ids.end()) return {};
  return invalid(fmt::format("token {} is not in the vocabulary of {}", *outside, vocab), field);
}

Result<std::vector<gen::TokenId>> LocalService::encode(std::string_view text,
                                                       bool add_special) const {
  return text_.tokenizer->encode(text, add_special);
}

Result<std::vector<std::string>> LocalService::token_bytes(
    const std::vector<gen::TokenId>& ids) const {
  if (const Status known = check_ids(ids, "tokens"); !known) return known.error();
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (const gen::TokenId id : ids) out.emplace_back(text_.tokenizer->bytes(id));
  return out;
}

Result<std::string> LocalService::decode(const std::vector<gen::TokenId>& ids) const {
  if (const Status known = check_ids(ids, "tokens"); !known) return known.error();
  text::Detokenizer detokenizer(*text_.tokenizer);
  std::string out;
  for (const gen::TokenId id : ids) out += detokenizer.push(id);
  if (detokenizer.finish()) out += "\uFFFD";
  return out;
}

ModelInfo LocalService::model() const {
  ModelInfo info = info_;
  info.max_context = max_context();
  info.max_output = std::min(info.max_output, info.max_context);
  info.can_think = text_.thinking.has_value();
  return info;
}

uint32_t LocalService::vocab() const {
  const uint32_t generator = generator_.limits().vocab;
  return generator == 0 ? info_.vocab : generator;
}

uint32_t LocalService::max_context() const {
  const uint32_t generator = generator_.limits().max_context;
  if (generator == 0 || info_.max_context == 0) return std::max(generator, info_.max_context);
  return std::min(generator, info_.max_context);
}

Status LocalService::check_fits(const Prompt& prompt) const {
  const uint32_t context = max_context();
  if (prompt.ids.size() < context) return {};
  if (context == 0) return Error{ErrorCode::kUnavailable, "the model's context is not known yet"};
  return Error{.code = ErrorCode::kTooLarge,
               // Clients know this form by its first words and numbers.
               .message = fmt::format("prompt is too long: {} tokens > {} maximum (a context of {} "
                                      "tokens, with room for at least one more)",
                                      prompt.ids.size(), context - 1, context),
               .field = prompt.is_conversation ? "messages" : "prompt"};
}

GrammarPlace LocalService::grammar_place(const Request& request, bool in_thinking) const {
  bool may_think = in_thinking;
  if (const auto* conversation = std::get_if<Conversation>(&request.input)) {
    Json arguments = options_.template_arguments;
    arguments.update(conversation->template_arguments);
    const bool is_off =
        request.guards.forbids_thinking() || arguments.value("enable_thinking", Json()) == false;
    may_think = in_thinking || !(is_off || conversation->continues_last_message);
  }
  return {.dialect = dialect_,
          .model = text_,
          .compiler = *compiler_,
          .may_think = may_think,
          .in_thinking = in_thinking};
}

gen::Request LocalService::to_generation(const Request& request, const Prompt& prompt) const {
  const uint32_t room = max_context() - static_cast<uint32_t>(prompt.ids.size());
  const uint32_t wanted = request.max_tokens.value_or(room);
  gen::Request generation;
  generation.client = request.client;
  generation.salt = request.salt;
  generation.prompt = prompt.ids;
  generation.sampling = request.sampling;
  generation.sampling.seed = request.seed ? *request.seed : options_.draw_seed();
  generation.max_tokens = std::min(wanted, room);
  generation.min_tokens = request.min_tokens;
  generation.stop_ids = text_.eos;
  generation.ignore_eos = request.ignore_eos;
  generation.logprobs = request.logprobs;
  generation.priority = request.priority;
  generation.deadline = request.deadline;
  generation.index_reuse = request.index_reuse;
  if (generation.sampling.xtc_probability > 0 && generation.sampling.xtc_exempt.empty()) {
    generation.sampling.xtc_exempt = text_.eos;
    if (auto newline = text_.tokenizer->encode("\n", false)) {
      auto& exempt = generation.sampling.xtc_exempt;
      exempt.insert(exempt.end(), newline->begin(), newline->end());
    }
  }
  return generation;
}

}  // namespace tandem::chat
