// The text that a custom tool takes, out of the arguments of the function that the model sees.
#pragma once

#include <string>
#include <string_view>

namespace tandem::protocol::openai {

/// Reads arguments as they come, cut anywhere between bytes. The text is that of the member "input"
/// (chat::kTextInput): piece by piece where the object begins with it, at the end where it does
/// not. Nothing at all is no text; arguments without such a text are the text themselves.
class CustomInput {
 public:
  /// The next piece of JSON. What of the text is certain by it.
  std::string feed(std::string_view json);

  /// No more comes. The rest of the text.
  std::string end();

 private:
  enum class State { kHead, kText, kDone };

  std::string text_so_far();

  State state_ = State::kHead;
  std::string held_;  // that was not read yet; of the head all
};

/// The text of whole arguments.
std::string custom_input(std::string_view arguments);

}  // namespace tandem::protocol::openai
