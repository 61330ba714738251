#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "conf/config.h"
#include "control/kernel_sink.h"
#include "control/publish/publisher.h"
#include "control/server/listen.h"
#include "control/server/server.h"

namespace sluice::daemon {

// What every mode of the daemon is wired with. Thread: main.

/// Of the project, as the build names it.
extern const char* const kVersion;

/// Signals that end the daemon; blocked in every thread, taken by wait_for_end().
[[nodiscard]] sigset_t end_signals();

/// One of them is waiting to be taken.
[[nodiscard]] bool end_is_pending();
/// One of them is waiting, or wait_for_end() has taken it. Thread: any.
[[nodiscard]] bool told_to_end();

/// Writes a warning to the log. Thread: any.
void warn_line(const std::string& line);

/// Holds the place where the server will listen, so that a second daemon is refused before it has
/// touched anything.
[[nodiscard]] core::Result<std::unique_ptr<server::UnixSocket>> claim_listen(
    const std::string& listen);

[[nodiscard]] publish::Publisher::Options publisher_options(const conf::Config& config);
/// The pace of a kernel adapter.
[[nodiscard]] publish::SinkSlot kernel_slot(const conf::Config& config, core::TableSink& sink);
[[nodiscard]] server::Server::Options server_options(const conf::Config& config);

/// Asked now and then while the daemon serves; a text: why it must end.
using MustEnd = std::function<std::string()>;

/// Waits for a signal. @param failed  asked now and then.
/// @return the reason when something else ends the daemon.
[[nodiscard]] core::Result<void> wait_for_end(const publish::Publisher& publisher,
                                              const MustEnd& failed);

/// Stops the publisher before anything goes that its sinks call, whatever way a mode ends.
struct PublisherStop {
  publish::Publisher& publisher;
  ~PublisherStop() { publisher.stop(); }
};

/// Serves until a signal. Errors: one line; the host is left as it was.
[[nodiscard]] core::Result<void> serve_dpdk(const conf::Config& config, TakeOver take_over,
                                            const MustEnd& must_end);
[[nodiscard]] core::Result<void> serve_kernel(const conf::Config& config, TakeOver take_over,
                                              const MustEnd& must_end);

}  // namespace sluice::daemon
