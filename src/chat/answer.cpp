#include "chat/answer.h"

#include <algorithm>
#include <utility>

namespace tandem::chat {

Answer::Answer(std::shared_ptr<const AnswerRules> rules)
    : rules_(std::move(rules)),
      detokenizer_(*rules_->tokenizer),
      machine_(rules_->text, static_cast<uint8_t>(rules_->first_channel)) {
  usage_.prompt_tokens = rules_->prompt_tokens;
}

std::vector<EventBody> Answer::take(const gen::Event& event) {
  std::vector<EventBody> out;
  if (done_) return out;
  if (const auto* started = std::get_if<gen::Started>(&event.body)) {
    if (!cached_tokens_) cached_tokens_ = usage_.cached_tokens = started->cached_tokens;
  } else if (const auto* prefilled = std::get_if<gen::Prefilled>(&event.body)) {
    if (usage_.completion_tokens == 0)
      out.emplace_back(Progress{prefilled->done, prefilled->total, usage_.cached_tokens});
  } else if (const auto* tokens = std::get_if<gen::Tokens>(&event.body)) {
    for (const gen::Token& token : tokens->tokens) {
      if (!done_) draw(token, out);
    }
  } else if (const auto* finished = std::get_if<gen::Finished>(&event.body)) {
    flush(out);
    const bool length = finished->reason == gen::FinishReason::kLength;
    if (!done_) end(length ? FinishReason::kLength : FinishReason::kStop, "", out);
  } else if (const auto* failed = std::get_if<gen::Failed>(&event.body)) {
    flush(out);
    if (!done_) fail(failed->error, out);
  } else {
    pop(drawn_.size(), machine_.state());
    fail({.code = ErrorCode::kCancelled, .message = "the request was cancelled"}, out);
  }
  return out;
}

void Answer::draw(const gen::Token& token, std::vector<EventBody>& out) {
  ++usage_.completion_tokens;
  if (is_stop_id(token.id)) return;
  std::optional<LogprobEntry> logprob;
  if (rules_->logprobs) logprob = logprob_of(token);
  drawn_.push_back({.begin = decoded_, .end = std::nullopt, .logprob = std::move(logprob)});
  if (is_hidden(token.id)) {
    drawn_.back().end = decoded_;
  } else {
    append_text(token, out);
  }
}

void Answer::append_text(const gen::Token& token, std::vector<EventBody>& out) {
  const std::string text = detokenizer_.push(token.id);
  decoded_ += text.size();
  const bool complete = !detokenizer_.is_inside_character();
  for (size_t i = 0; i < drawn_.size(); ++i) {
    const bool is_last = i + 1 == drawn_.size();
    if (!drawn_[i].end && (complete || (!is_last && !text.empty()))) drawn_[i].end = decoded_;
  }
  deliver(machine_.feed(text), out);
}

void Answer::deliver(const std::vector<Piece>& pieces, std::vector<EventBody>& out) {
  for (size_t i = 0; i < pieces.size() && !done_; ++i) {
    const Piece& piece = pieces[i];
    if (piece.kind == Piece::Kind::kText) {
      const bool is_cut = i + 1 < pieces.size() && pieces[i + 1].kind != Piece::Kind::kText;
      deliver_text(piece, is_cut, out);
    } else if (piece.kind == Piece::Kind::kMarker) {
      const auto inside = std::ranges::find_if(
          drawn_, [&](const Drawn& token) { return !token.end || *token.end > piece.end; });
      drawn_.erase(drawn_.begin(), inside);
    } else {
      pop(drawn_.size(), piece.state);
      end(FinishReason::kStop, piece.text, out);
    }
  }
}

/// `is_cut`: a marker or stop string follows, so that a token may reach beyond the piece.
void Answer::deliver_text(const Piece& piece, bool is_cut, std::vector<EventBody>& out) {
  const auto rest = std::ranges::find_if(drawn_, [&](const Drawn& token) {
    return is_cut ? token.begin >= piece.end : !token.end || *token.end > piece.end;
  });
  const auto count = static_cast<size_t>(rest - drawn_.begin());
  out.emplace_back(Delta{.channel = static_cast<Channel>(piece.state),
                         .text = piece.text,
                         .logprobs = pop(count, piece.state)});
}

/// Takes the first tokens off the queue and counts those of thinking.
std::vector<LogprobEntry> Answer::pop(size_t count, uint8_t state) {
  std::vector<LogprobEntry> entries;
  for (size_t i = 0; i < count; ++i) {
    if (drawn_.front().logprob) entries.push_back(std::move(*drawn_.front().logprob));
    drawn_.pop_front();
  }
  if (state == static_cast<uint8_t>(Channel::kThinking)) {
    usage_.reasoning_tokens += static_cast<uint32_t>(count);
  }
  return entries;
}

/// The answer goes no further: what was held back is text, except bytes of half a character.
void Answer::flush(std::vector<EventBody>& out) {
  detokenizer_.finish();
  deliver(machine_.flush(), out);
  if (done_) return;
  auto entries = pop(drawn_.size(), machine_.state());
  if (entries.empty()) return;
  out.emplace_back(Delta{.channel = static_cast<Channel>(machine_.state()),
                         .text = {},
                         .logprobs = std::move(entries)});
}

void Answer::end(FinishReason reason, std::string stop_text, std::vector<EventBody>& out) {
  done_ = true;
  out.emplace_back(End{.reason = reason, .stop_text = std::move(stop_text), .usage = usage_});
}

void Answer::fail(Error error, std::vector<EventBody>& out) {
  done_ = true;
  out.emplace_back(Failed{.error = std::move(error), .usage = usage_});
}

bool Answer::is_stop_id(text::TokenId id) const {
  return !rules_->ignore_eos && std::ranges::find(rules_->stop_ids, id) != rules_->stop_ids.end();
}

/// Special tokens are not text, except those that markers are made of.
bool Answer::is_hidden(text::TokenId id) const {
  if (!rules_->tokenizer->is_special(id)) return false;
  const std::string_view spelling = rules_->tokenizer->spelling(id);
  return std::ranges::none_of(rules_->markers, [&](const std::string& marker) {
    return marker.find(spelling) != std::string::npos;
  });
}

LogprobEntry Answer::logprob_of(const gen::Token& token) const {
  const auto text_of = [this](text::TokenId id, float logprob) {
    return TokenText{.bytes = std::string(rules_->tokenizer->bytes(id)), .logprob = logprob};
  };
  LogprobEntry entry{.token = text_of(token.id, token.logprob), .top = {}};
  for (const gen::TokenLogprob& other : token.top) {
    entry.top.push_back(text_of(other.id, other.logprob));
  }
  return entry;
}

}  // namespace tandem::chat
