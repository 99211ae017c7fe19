#include "search/tuner.h"
