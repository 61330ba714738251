#include "dataplane/dpdk/log.h"

#include <cstdarg>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_log.h>

namespace sluice::dpdk {

struct DpdkLog::State {
  LogSink sink;
  std::mutex mutex;
  std::string partial;
  std::string last_error;

  void add(std::string_view text) {
    const std::lock_guard lock(mutex);
    const bool error = rte_log_cur_msg_loglevel() <= static_cast<int>(RTE_LOG_ERR);
    partial.append(text);
    for (std::size_t end = partial.find('\n'); end != std::string::npos;
         end = partial.find('\n')) {
      std::string line = partial.substr(0, end);
      partial.erase(0, end + 1);
      if (line.empty()) {
        continue;
      }
      if (sink) {
        sink(Severity::kDebug, line);
      }
      if (error) {
        last_error = std::move(line);
      }
    }
  }
};

namespace {

// Types of libbpf's and libxdp's print hooks; both libraries share them. They are found at run time
// because only the af_xdp plugin links these libraries.
using BpfPrint = int (*)(int level, const char* format, va_list arguments);
using SetBpfPrint = BpfPrint (*)(BpfPrint);

int print_bpf(int /*level*/, const char* format, va_list arguments) {
  return rte_vlog(RTE_LOG_INFO, RTE_LOGTYPE_USER1, format, arguments);
}

}  // namespace

DpdkLog::DpdkLog(LogSink sink) : state_(std::make_unique<State>()) {
  state_->sink = std::move(sink);
  cookie_io_functions_t calls = {};
  calls.write = [](void* cookie, const char* data, std::size_t size) -> ssize_t {
    static_cast<State*>(cookie)->add({data, size});
    return static_cast<ssize_t>(size);
  };
  stream_ = fopencookie(state_.get(), "w", calls);
  if (stream_ != nullptr) {
    setvbuf(stream_, nullptr, _IOLBF, 0);
    rte_openlog_stream(stream_);
  }
}

DpdkLog::~DpdkLog() {
  rte_openlog_stream(nullptr);
  if (stream_ != nullptr) {
    std::fclose(stream_);
  }
}

std::string DpdkLog::take_last_error() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->last_error, {});
}

void DpdkLog::quiet_bpf_libraries() {
  // Plugins are loaded without RTLD_GLOBAL, so their libraries are asked for by name.
  const std::pair<const char*, const char*> hooks[] = {{"libbpf.so.1", "libbpf_set_print"},
                                                       {"libbpf.so.0", "libbpf_set_print"},
                                                       {"libxdp.so.1", "libxdp_set_print"}};
  for (const auto& [library, name] : hooks) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (void* symbol = handle == nullptr ? nullptr : dlsym(handle, name)) {
      reinterpret_cast<SetBpfPrint>(symbol)(print_bpf);
    }
    if (handle != nullptr) {
      dlclose(handle);
    }
  }
}

StderrCapture::StderrCapture() {
  std::fflush(stderr);
  saved_ = dup(STDERR_FILENO);
  memory_ = memfd_create("sluice-stderr", MFD_CLOEXEC);
  if (saved_ >= 0 && memory_ >= 0) {
    dup2(memory_, STDERR_FILENO);
  }
}

StderrCapture::~StderrCapture() { finish(); }

std::string StderrCapture::finish() {
  std::string text;
  if (saved_ >= 0) {
    std::fflush(stderr);
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }
  if (memory_ >= 0) {
    text.resize(4096);
    const ssize_t size = pread(memory_, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    close(memory_);
    memory_ = -1;
  }
  return text;
}

}  // namespace sluice::dpdk
