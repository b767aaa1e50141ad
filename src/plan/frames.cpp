#include "plan/frames.h"

#include <fmt/format.h>

#include "plan/codec.h"

namespace tandem::plan {

template <>
inline constexpr uint8_t kLastEnumerator<ErrorCode> = static_cast<uint8_t>(ErrorCode::kInternal);
template <>
inline constexpr uint8_t kLastEnumerator<gen::FinishReason> = 1;
template <>
inline constexpr uint8_t kLastEnumerator<gen::Priority> = 1;
template <>
inline constexpr uint8_t kLastEnumerator<gen::GrammarKind> = 3;
template <>
inline constexpr uint8_t kLastEnumerator<CommKind> = static_cast<uint8_t>(CommKind::kMpi);

// Each lists a struct's members in the order of FORMAT.md.
void fields(auto& a, IsOf<Error> auto& e) { a(e.code, e.message, e.field); }
void fields(auto& a, IsOf<gen::Limits> auto& l) {
  a(l.vocab, l.max_context, l.chooses_blocks, l.hidden);
}
void fields(auto& a, IsOf<gen::LogitBias> auto& b) { a(b.id, b.bias); }
void fields(auto& a, IsOf<gen::Penalty> auto& p) { a(p.value, p.context); }
void fields(auto& a, IsOf<gen::Sampling> auto& s) {
  a(s.temperature, s.top_p, s.top_k, s.min_p, s.xtc_probability, s.xtc_threshold, s.xtc_exempt);
  a(s.repetition, s.presence, s.frequency, s.logit_bias, s.seed, s.choice);
}
void fields(auto& a, IsOf<gen::Grammar> auto& g) { a(g.kind, g.source); }
void fields(auto& a, IsOf<gen::Request> auto& r) {
  a(r.id, r.client, r.salt, r.prompt, r.emitted, r.sampling, r.max_tokens, r.min_tokens);
  a(r.stop_ids, r.ignore_eos, r.logprobs, r.priority, r.deadline);
  a(r.index_reuse, r.pooling, r.grammar);
}
void fields(auto& a, IsOf<gen::TokenLogprob> auto& t) { a(t.id, t.logprob); }
void fields(auto& a, IsOf<gen::Token> auto& t) { a(t.id, t.logprob, t.top); }
void fields(auto& a, IsOf<gen::Started> auto& s) { a(s.cached_tokens); }
void fields(auto& a, IsOf<gen::Prefilled> auto& p) { a(p.done, p.total); }
void fields(auto& a, IsOf<gen::Tokens> auto& t) { a(t.tokens); }
void fields(auto& a, IsOf<gen::Finished> auto& f) { a(f.reason); }
void fields(auto& a, IsOf<gen::Failed> auto& f) { a(f.error); }
void fields(auto& /*a*/, IsOf<gen::Cancelled> auto& /*c*/) {}
void fields(auto& a, IsOf<gen::Embedding> auto& e) { a(e.values); }
void fields(auto& a, IsOf<gen::Event> auto& e) { a(e.request, e.body); }

void fields(auto& a, IsOf<Hello> auto& f) {
  a(f.protocol, f.build, f.instance, f.rank, f.size, f.pid);
  a(f.plan_address, f.data_address, f.model_fingerprint, f.memory_bytes);
}
void fields(auto& a, IsOf<Ready> auto& f) { a(f.epoch, f.limits, f.pages, f.page_tokens, f.depth); }
void fields(auto& a, IsOf<Beat> auto& f) { a(f.epoch, f.steps, f.busy, f.predicted_step); }
void fields(auto& a, IsOf<Report> auto& f) { a(f.epoch, f.events); }
void fields(auto& a, IsOf<Refused> auto& f) { a(f.epoch, f.request, f.error); }
void fields(auto& a, IsOf<Fault> auto& f) { a(f.epoch, f.error); }
void fields(auto& a, IsOf<Aborted> auto& f) { a(f.epoch); }
void fields(auto& /*a*/, IsOf<Drained> auto& /*f*/) {}
void fields(auto& a, IsOf<Loading> auto& f) { a(f.text, f.fraction); }
void fields(auto& a, IsOf<Memory> auto& m) { a(m.weight_bytes, m.cache_bytes, m.resident_bytes); }
void fields(auto& a, IsOf<EngineTotals> auto& t) {
  a(t.steps, t.rows, t.answer_tokens, t.prompt_tokens, t.reused_tokens, t.computed_tokens);
  a(t.pauses, t.window_pages_left, t.step_time, t.step_counts);
}
void fields(auto& a, IsOf<PoolFigures> auto& p) { a(p.free, p.cached, p.referenced); }
void fields(auto& a, IsOf<EngineFigures> auto& e) {
  a(e.waiting, e.paused, e.running, e.pages, e.window_pages, e.states, e.totals);
}
void fields(auto& a, IsOf<Figures> auto& f) { a(f.memory, f.engine); }
void fields(auto& a, IsOf<Form> auto& f) {
  a(f.epoch, f.rank, f.size, f.plan_addresses, f.data_addresses);
  a(f.comm, f.shared_memory_name, f.secret, f.timeout);
}
void fields(auto& a, IsOf<Submit> auto& f) { a(f.epoch, f.request); }
void fields(auto& a, IsOf<Cancel> auto& f) { a(f.epoch, f.request); }
void fields(auto& a, IsOf<Abort> auto& f) { a(f.epoch); }
void fields(auto& /*a*/, IsOf<Drain> auto& /*f*/) {}
void fields(auto& /*a*/, IsOf<HeadBeat> auto& /*f*/) {}
void fields(auto& /*a*/, IsOf<Shutdown> auto& /*f*/) {}
void fields(auto& a, IsOf<Join> auto& f) { a(f.rank, f.epoch); }
void fields(auto& a, IsOf<Execute> auto& f) { a(f.plan); }
void fields(auto& a, IsOf<Ack> auto& f) { a(f.sequence, f.state_hash); }
void fields(auto& a, IsOf<FollowerFault> auto& f) { a(f.sequence, f.error); }

namespace {

template <class T>
Frame read_as(Reader& reader) {
  T body;
  reader(body);
  return body;
}

template <size_t... I>
Frame read_body(Reader& reader, uint8_t kind, std::index_sequence<I...> /*all*/) {
  Frame frame;
  const bool known = ((std::variant_alternative_t<I, Frame>::kKind == kind
                           ? (frame = read_as<std::variant_alternative_t<I, Frame>>(reader), true)
                           : false) ||
                      ...);
  if (!known) reader.fail(ErrorCode::kUnsupported, fmt::format("unknown frame kind {}", kind));
  return frame;
}

const char* name_of(uint8_t kind) {
  switch (kind) {
    case Hello::kKind:
      return "Hello";
    case Ready::kKind:
      return "Ready";
    case Beat::kKind:
      return "Beat";
    case Report::kKind:
      return "Report";
    case Refused::kKind:
      return "Refused";
    case Fault::kKind:
      return "Fault";
    case Aborted::kKind:
      return "Aborted";
    case Drained::kKind:
      return "Drained";
    case Loading::kKind:
      return "Loading";
    case Figures::kKind:
      return "Figures";
    case Form::kKind:
      return "Form";
    case Submit::kKind:
      return "Submit";
    case Cancel::kKind:
      return "Cancel";
    case Abort::kKind:
      return "Abort";
    case Drain::kKind:
      return "Drain";
    case HeadBeat::kKind:
      return "HeadBeat";
    case Shutdown::kKind:
      return "Shutdown";
    case Join::kKind:
      return "Join";
    case Execute::kKind:
      return "Execute";
    case Ack::kKind:
      return "Ack";
    case FollowerFault::kKind:
      return "FollowerFault";
    default:
      return "unknown";
  }
}

}  // namespace

Bytes encode(const Frame& frame) {
  Writer writer;
  std::visit(
      [&](const auto& body) {
        const uint8_t kind = body.kKind;
        writer(kFormatVersion, kind, body);
      },
      frame);
  return writer.take();
}

Bytes encode_execute(const StepPlan& plan) {
  Writer writer;
  const uint8_t kind = Execute::kKind;
  writer(kFormatVersion, kind, plan);
  return writer.take();
}

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  read_version(reader);
  uint8_t kind = 0;
  reader(kind);
  if (reader.failed()) return reader.finish("plan.frame").error();
  Frame frame = read_body(reader, kind, std::make_index_sequence<std::variant_size_v<Frame>>());
  if (const Status read = reader.finish("plan.frame"); !read) return read.error();
  return frame;
}

const char* name(const Frame& frame) {
  return name_of(std::visit([](const auto& body) { return uint8_t{body.kKind}; }, frame));
}

}  // namespace tandem::plan
