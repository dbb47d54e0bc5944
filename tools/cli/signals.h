// Ctrl-C and `kill` end a program in an orderly way: the first SIGINT, SIGTERM or SIGHUP is
// remembered, the second ends the process at once.
//
//   Signals::watch();
//   while (work() && Signals::received() == 0) save();
//   return 128 + Signals::received();
#pragma once

namespace millrace {

class Signals {
 public:
  // Until this is called, signals have their default effect.
  static void watch();
  // The number of the signal that was received, or 0.
  static int received();
};

}  // namespace millrace
