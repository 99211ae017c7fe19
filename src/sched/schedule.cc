#include "sched/step.h"
