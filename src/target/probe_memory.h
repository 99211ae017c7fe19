// Internal to src/target.
#pragma once

namespace tensorsmith::target {

// Returns the share (0 to 1) of some data that is still cached, from three times for reading all of
// it: `at_once` if it is fully cached, `later` after a pause, `lost` if nothing of it is cached.
// Returns 1 if `lost` is not longer than `at_once`.
double retained_share(double at_once, double later, double lost);

}  // namespace tensorsmith::target
