#include "learn/cost_model.h"
