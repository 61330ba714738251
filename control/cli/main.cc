#include <csignal>
#include <iostream>

#include "control/cli/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `sluicectl conns | head` ends by the failing write
  std::ios::sync_with_stdio(false);
  return sluice::cli::run(argc, argv, std::cin, std::cout, std::cerr);
}
