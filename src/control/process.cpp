#include "control/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace tandem::control {
namespace {

constexpr int kStatusFd = 4;  // in the child until exec: tells the parent why it failed

/// Both ends of a pipe, closed with the object, kept above the child's fixed descriptors and never
/// inherited.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe(ends.data()) != 0) return;
    read_ = lift(ends[0]);
    write_ = lift(ends[1]);
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool is_open() const { return read_ >= 0 && write_ >= 0; }
  int read_end() const { return read_; }
  int write_end() const { return write_; }
  void close_read() { close_end(read_); }
  void close_write() { close_end(write_); }

 private:
  static int lift(int fd) {
    const int lifted = ::fcntl(fd, F_DUPFD_CLOEXEC, kStatusFd + 1);
    ::close(fd);
    return lifted;
  }
  static void close_end(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }

  int read_ = -1;
  int write_ = -1;
};

Error system_error(const std::string& what, int number) {
  return Error{ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(number))};
}

/// What the child needs after fork(), prepared before it: there only async-signal-safe calls are
/// allowed.
struct ChildPlan {
  const char* program = nullptr;
  char* const* arguments = nullptr;
  int secret = -1;
  int status = -1;
  int output = -1;
  pid_t parent = 0;
};

[[noreturn]] void child_fails(int status_fd) {
  const int number = errno;
  const ssize_t written = ::write(status_fd, &number, sizeof number);
  ::_exit(written == sizeof number ? 127 : 126);
}

void close_from(int lowest) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(lowest), ~0U, 0U) == 0) return;
#endif
  for (int fd = lowest; fd < 4096; ++fd) ::close(fd);
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  ::setpgid(0, 0);
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(126);  // the parent died before the line above
#endif
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE}) {
    ::sigaction(number, &plain, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0) child_fails(plan.status);
  if (plan.output >= 0 && ::dup2(plan.output, STDOUT_FILENO) < 0) child_fails(plan.status);
  if (plan.output >= 0 && ::dup2(plan.output, STDERR_FILENO) < 0) child_fails(plan.status);
  if (::dup2(plan.secret, Process::kSecretFd) < 0) child_fails(plan.status);
  if (::dup2(plan.status, kStatusFd) < 0) child_fails(plan.status);
  ::fcntl(kStatusFd, F_SETFD, FD_CLOEXEC);
  close_from(kStatusFd + 1);
  ::execv(plan.program, plan.arguments);
  child_fails(kStatusFd);
}

int open_output(const std::string& path) {
  if (path.empty()) return -1;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  const int lifted = ::fcntl(fd, F_DUPFD_CLOEXEC, kStatusFd + 1);
  ::close(fd);
  return lifted;
}

Result<pid_t> fork_child(const ProcessOptions& options) {
  Pipe secret;
  Pipe status;
  if (!secret.is_open() || !status.is_open()) return system_error("cannot open a pipe", errno);
  const auto bytes = static_cast<ssize_t>(options.secret.size());
  if (::write(secret.write_end(), options.secret.data(), options.secret.size()) != bytes) {
    return system_error("cannot hand over the secret", errno);
  }
  const int output = open_output(options.output_path);
  if (output < 0 && !options.output_path.empty()) {
    return system_error("cannot open " + options.output_path, errno);
  }
  std::vector<char*> arguments{const_cast<char*>(options.program.c_str())};
  for (const std::string& argument : options.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const ChildPlan plan{.program = options.program.c_str(),
                       .arguments = arguments.data(),
                       .secret = secret.read_end(),
                       .status = status.write_end(),
                       .output = output,
                       .parent = ::getpid()};
  const pid_t pid = ::fork();
  if (pid == 0) run_child(plan);
  const int fork_error = errno;
  if (output >= 0) ::close(output);
  if (pid < 0) return system_error("cannot fork", fork_error);

  ::setpgid(pid, pid);  // also here: a kill of the group may come before the child has run
  status.close_write();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(status.read_end(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof number) return pid;
  ::waitpid(pid, nullptr, 0);
  return system_error("cannot start " + options.program, number);
}

}  // namespace

std::string describe(ExitStatus status) {
  if (status.signal == 0) return fmt::format("exited with code {}", status.code);
  return fmt::format("was killed by signal {} ({})", status.signal, ::strsignal(status.signal));
}

Result<std::unique_ptr<Process>> Process::spawn(ProcessOptions options, OnExit on_exit) {
  if (options.secret.size() > kMaxSecretBytes) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("a child's secret has {} bytes, at most {} are allowed",
                             options.secret.size(), kMaxSecretBytes)};
  }
  std::unique_ptr<Process> process(new Process);
  process->on_exit_ = std::move(on_exit);
  process->thread_ = std::thread(
      [self = process.get(), options = std::move(options)] { self->own_child(options); });
  Status started;
  {
    std::unique_lock lock(process->mutex_);
    process->changed_.wait(lock, [&] { return process->is_up_; });
    started = process->started_;
  }
  if (!started) return started.error();
  return process;
}

Process::~Process() {
  kill(SIGKILL);
  thread_.join();
}

void Process::kill(int signal) {
  const std::lock_guard lock(mutex_);
  if (pid_ > 0 && !is_over_) ::kill(-pid_, signal);
}

bool Process::wait_for(Duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return is_over_; });
}

// The child's parent-death signal is bound to the thread that forked it, so this thread stays until
// the child is gone.
void Process::own_child(const ProcessOptions& options) {
  Result<pid_t> pid = fork_child(options);
  {
    const std::lock_guard lock(mutex_);
    if (pid) pid_ = *pid;
    if (!pid) started_ = pid.error();
    is_over_ = !pid;
    is_up_ = true;
  }
  changed_.notify_all();
  if (pid) reap();
}

void Process::reap() {
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  ExitStatus status;
  {
    const std::lock_guard lock(mutex_);
    ::kill(-pid_, SIGKILL);  // what the child started goes with it, while the pid is still ours
    int raw = 0;
    ::waitpid(pid_, &raw, 0);
    status = WIFSIGNALED(raw) ? ExitStatus{.signal = WTERMSIG(raw)}
                              : ExitStatus{.code = WEXITSTATUS(raw)};
    is_over_ = true;
  }
  changed_.notify_all();
  if (on_exit_) on_exit_(status);
}

}  // namespace tandem::control
