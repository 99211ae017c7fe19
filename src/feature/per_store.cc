#include "feature/per_store.h"
