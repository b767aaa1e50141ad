#include "dialect/written_answer.h"

namespace tandem::dialect {
namespace {

/// Fills $text.
std::string filled(std::string_view form, std::string_view text) {
  std::string out;
  walk(form, [&](std::string_view piece) { out += piece; }, [&](std::string_view) { out += text; });
  return out;
}

class Writer {
 public:
  Writer(const Layout& layout, const AnswerStart& start)
      : layout_(layout), start_(start), in_thinking_(start.in_thinking) {}

  void add(const AnswerPart& part) {
    if (part.channel == Channel::kThinking) return think(part.text);
    close_thinking();
    if (part.channel == Channel::kText) {
      out_ += layout_.prose.empty() ? part.text : filled(layout_.prose, part.text);
      return;
    }
    if (!out_.empty()) out_ += layout_.mark_after_text;
    out_ += render(layout_, part.calls);
  }

  std::string take() {
    if (out_.starts_with(layout_.in_prompt)) out_.erase(0, layout_.in_prompt.size());
    return std::move(out_);
  }

 private:
  void think(const std::string& text) {
    if (!layout_.thought.empty()) {
      out_ += filled(layout_.thought, text);
    } else if (start_.thinking) {
      if (!in_thinking_) out_ += start_.thinking->start;
      in_thinking_ = true;
      out_ += text;
      close_thinking();
    }
  }

  void close_thinking() {
    if (!in_thinking_ || !start_.thinking) return;
    out_ += start_.thinking->end;
    in_thinking_ = false;
  }

  const Layout& layout_;
  const AnswerStart& start_;
  bool in_thinking_;
  std::string out_;
};

}  // namespace

std::string write_answer(const Dialect& dialect,
                         const AnswerStart& start,
                         std::span<const AnswerPart> parts) {
  Writer writer(dialect.layout, start);
  for (const AnswerPart& part : parts) writer.add(part);
  return writer.take();
}

}  // namespace tandem::dialect
