// Internal to the room.
#pragma once

namespace tensorsmith::target {

// What is left in the caches of data whose reading takes at_once when all are, later after some time and lost
// when none are, of 0 .. 1; 1 where lost data are read as fast.
double retained_share(double at_once, double later, double lost);

}  // namespace tensorsmith::target
