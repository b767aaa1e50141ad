#include "protocol/openai/background_run.h"

#include <doctest/doctest.h>

#include "store/folder_test.h"

namespace tandem::protocol::openai {

TEST_CASE("background run: it is let go of once it is over, however it ended") {
  const store::TestFolder folder;
  const auto store = store::Store::open({.folder = folder.state()}).value();
  const KeptResponses kept(*store, {});
  BackgroundRuns runs;
  for (const bool is_refused : {false, true}) {
    KeptResponse record;
    record.response = Json{{"id", "resp_x"}, {"status", "queued"}};
    auto run = std::make_shared<BackgroundRun>(kept, "key", record, std::chrono::seconds(1));
    const std::weak_ptr<BackgroundRun> left = run;
    runs.add("resp_x", run);
    CHECK(runs.find("key", "resp_x") == run);
    CHECK_FALSE(runs.find("other", "resp_x"));
    run->write("event: response.queued\ndata: {}\n\n");
    if (is_refused) {
      run->send({.status = 429, .headers = {}, .body = {}});
    } else {
      run->finish();
    }
    run.reset();  // as the Call does
    CHECK(left.expired());
  }
}

}  // namespace tandem::protocol::openai
