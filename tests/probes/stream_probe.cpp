// Streams belong to threads, and errors to streams.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "host_op.h"

namespace probe {
namespace {

array one(const Arrays& inputs = {}, std::function<void(const Arrays&)> at_eval = {}) {
  const auto work = [](const Arrays&, Arrays& out) { out[0].data<float>()[0] = 1.0F; };
  return host_op({1}, inputs, work, std::move(at_eval));
}

/// Waits until a count has grown past `least` and then stood still for a while.
void settle(const std::atomic<int>& count, int least) {
  int seen = -1;
  while (seen < least || seen != count) {
    seen = count;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

template <class Body>
void in_thread(Body body) {
  std::thread(body).join();
}

}  // namespace

TEST_CASE("streams: the default stream is another one in each thread") {
  const mx::Stream here = cpu();
  std::optional<mx::Stream> there;
  in_thread([&] { there = cpu(); });
  CHECK(here == cpu());
  CHECK(!(here == *there));
}

TEST_CASE("streams: a graph built in one thread cannot be evaluated in another") {
  (void)cpu();
  array graph = one() + array(1.0F);
  std::string error;
  in_thread([&] {
    try {
      mx::eval(graph);
    } catch (const std::exception& e) {
      error = e.what();
    }
  });
  CHECK(error.find("Stream") != std::string::npos);
  mx::eval(graph);  // and is none the worse for it
  CHECK(graph.data<float>()[0] == 2.0F);
}

TEST_CASE("streams: evaluated arrays may be read and used in any thread") {
  array weights = mx::full({64}, 2.0F);
  mx::eval(weights);
  float sum = 0;
  in_thread([&] { sum = mx::sum(weights * array(3.0F)).item<float>(); });
  CHECK(sum == 384.0F);
}

TEST_CASE("streams: a thread-unsafe stream serves several threads in turn") {
  const mx::Stream shared = mx::new_thread_unsafe_stream(mx::Device::cpu);
  array graph = mx::add(array(1.0F), array(2.0F), shared);
  in_thread([&] { mx::eval(graph); });
  CHECK(graph.item<float>() == 3.0F);
}

TEST_CASE("streams: an exception in a task reaches the waiting thread once, as text alone") {
  struct Special : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  array broken =
      host_op({1}, {}, [](const Arrays&, Arrays&) { throw Special("broken in a task"); });
  std::string text;
  bool special = false;
  try {
    mx::async_eval(broken);
    broken.wait();
  } catch (const std::runtime_error& e) {
    text = e.what();
    special = dynamic_cast<const Special*>(&e) != nullptr;
  }
  CHECK(text == "broken in a task");
  CHECK(!special);  // so a failure's kind must be kept elsewhere
  array after = one() + array(1.0F);
  mx::eval(after);
  CHECK(after.data<float>()[0] == 2.0F);
}

TEST_CASE("streams: after a failed task the rest of the step still runs and counts as available") {
  // So an exception means: drop the step. Nothing in the arrays shows which of them are garbage.
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  std::atomic<bool> ran{false};
  array broken = host_op({1}, {}, [opened](const Arrays&, Arrays&) {
    opened.wait();  // until the whole step is queued
    throw std::runtime_error("broken");
  });
  array after = host_op({1}, {broken}, [&ran](const Arrays&, Arrays& out) {
    ran = true;
    out[0].data<float>()[0] = 1.0F;
  });
  mx::async_eval(after);
  gate.set_value();
  int thrown = 0;
  for (int i = 0; i < 2; ++i) {
    try {
      after.wait();
      mx::synchronize();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  CHECK(thrown == 1);
  CHECK(ran);
  CHECK(after.is_available());
}

TEST_CASE("streams: an exception inside eval_cpu is thrown by eval, and the stream goes on") {
  array broken = host_op(
      {1}, {}, [](const Arrays&, Arrays&) {},
      [](const Arrays&) { throw std::runtime_error("broken in eval_cpu"); });
  CHECK_THROWS_WITH(mx::eval(broken), "broken in eval_cpu");
  array after = one();
  mx::eval(after);
  CHECK(after.data<float>()[0] == 1.0F);
}

TEST_CASE("streams: is_available does not block") {
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  array stuck = host_op({1}, {}, [opened](const Arrays&, Arrays& out) {
    opened.wait();
    out[0].data<float>()[0] = 1.0F;
  });
  mx::async_eval(stuck);
  CHECK(!stuck.is_available());
  gate.set_value();
  stuck.wait();
  CHECK(stuck.is_available());
}

TEST_CASE("streams: a stuck task in one thread stops evaluation in all once enough is queued") {
  // So a group must be abortable without an eval, and there is one engine thread a process.
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  std::atomic<bool> queued{false};
  std::atomic<int> encoded{0};
  std::thread stuck([&] {
    array x = host_op({1}, {}, [opened](const Arrays&, Arrays& out) {
      opened.wait();
      out[0].data<float>()[0] = 0.0F;
    });
    for (int i = 0; i < 300; ++i) x = one({x}, [&](const Arrays&) { ++encoded; });
    mx::async_eval(x);  // returns only when most of it has run
    queued = true;
    x.wait();
  });
  std::promise<void> finished;
  auto other_done = finished.get_future();
  settle(encoded, 30);  // the queue is full
  CHECK(encoded < 300);
  CHECK(!queued);
  std::thread other([&] {
    array y = one();
    for (int i = 0; i < 30; ++i) y = one({y});
    mx::eval(y);
    finished.set_value();
  });
  CHECK(other_done.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout);
  gate.set_value();
  stuck.join();
  other.join();
  CHECK(queued);
}

TEST_CASE("streams: mx::depends keeps the order of operations that share no data") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto order = std::make_shared<std::vector<int>>();
    const auto log = [order](int id) {
      return [order, id](const Arrays&, Arrays& out) {
        order->push_back(id);
        out[0].data<float>()[0] = 0;
      };
    };
    const array first = host_op({1}, {}, log(1));
    const array x = mx::depends({array(0.0F)}, {first})[0];
    const array second = host_op({1}, {x}, log(2));
    const array y = mx::depends({array(0.0F)}, {second})[0];
    const array third = host_op({1}, {y}, log(3));
    repeat % 2 == 0 ? mx::eval(third, first, second) : mx::eval(second, third, first);
    CHECK(*order == std::vector<int>{1, 2, 3});
  }
}

}  // namespace probe
