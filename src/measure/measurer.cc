#include "measure/measurer.h"
