#include "space/design_space.h"
