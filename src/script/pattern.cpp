#include "script/pattern.h"

#include <fmt/format.h>

#include <boost/regex.hpp>

namespace tandem::script {
namespace {

std::vector<std::string> group_names(const std::string& source) {
  static const boost::regex kGroup(R"(\(\?<([A-Za-z_]\w*)>)");
  std::vector<std::string> names;
  for (boost::sregex_iterator it(source.begin(), source.end(), kGroup), end; it != end; ++it)
    names.push_back((*it)[1].str());
  return names;
}

}  // namespace

struct Pattern::Compiled {
  boost::regex regex;
};

Result<Pattern> Pattern::compile(const std::string& source) {
  Pattern pattern;
  pattern.source_ = source;
  pattern.names_ = group_names(source);
  try {
    pattern.compiled_ = std::make_shared<const Compiled>(Compiled{boost::regex(source)});
  } catch (const boost::regex_error& problem) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("the regular expression {} is not one: {}", source, problem.what())};
  }
  return pattern;
}

Result<std::optional<Variables>> Pattern::search(const std::string& text) const {
  try {
    boost::smatch match;
    if (!boost::regex_search(text, match, compiled_->regex)) return std::optional<Variables>();
    Variables found;
    for (const std::string& name : names_) {
      if (match[name].matched) found[name] = match[name].str();
    }
    return std::optional<Variables>(std::move(found));
  } catch (const std::runtime_error&) {  // over Boost's bound of steps
    return Error{ErrorCode::kInvalid,
                 fmt::format("the regular expression {} takes too many steps on {} bytes", source_,
                             text.size())};
  }
}

}  // namespace tandem::script
