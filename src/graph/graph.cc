#include "graph/emit.h"
#include "graph/tasks.h"
