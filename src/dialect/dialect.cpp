#include "dialect/dialect.h"

#include <algorithm>

#include "base/check.h"

namespace tandem::dialect {

#define X(name) Dialect name();
#include "dialect/family/registry.inc"
#undef X

namespace {

bool has_all(const std::string& text, const std::vector<std::string>& words) {
  return std::ranges::all_of(
      words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

bool fits_template(const Signs& signs, const std::string& source) {
  for (const std::string& word : signs.not_in_template) {
    if (source.find(word) != std::string::npos) return false;
  }
  return std::ranges::any_of(signs.in_template,
                             [&](const auto& words) { return has_all(source, words); });
}

template <class Fits>
const Dialect* first(const Fits& fits) {
  const Dialect* best = nullptr;
  for (const Dialect& dialect : all()) {
    if (fits(dialect.signs) && (best == nullptr || dialect.signs.order < best->signs.order)) {
      best = &dialect;
    }
  }
  return best;
}

}  // namespace

const std::vector<Dialect>& all() {
  static const std::vector<Dialect> kAll = {
#define X(name) name(),
#include "dialect/family/registry.inc"
#undef X
  };
  return kAll;
}

const Dialect* find(std::string_view name) {
  const auto found = std::ranges::find(all(), name, &Dialect::name);
  return found == all().end() ? nullptr : &*found;
}

const Dialect* recognize(const ModelSigns& model) {
  if (!model.parser_name.empty()) {
    const Dialect* named = first([&](const Signs& signs) {
      return std::ranges::find(signs.parser_names, model.parser_name) != signs.parser_names.end();
    });
    if (named != nullptr) return named;
  }
  if (!model.chat_template.empty()) {
    const Dialect* shown =
        first([&](const Signs& signs) { return fits_template(signs, model.chat_template); });
    if (shown != nullptr) return shown;
  }
  if (!model.has_token) return nullptr;
  return first([&](const Signs& signs) {
    return !signs.in_vocabulary.empty() &&
           std::ranges::all_of(signs.in_vocabulary,
                               [&](const std::string& token) { return model.has_token(token); });
  });
}

const Dialect& fallback() {
  const Dialect* found = find("generic");
  TANDEM_CHECK(found != nullptr, "no generic dialect");
  return *found;
}

}  // namespace tandem::dialect
