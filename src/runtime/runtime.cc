#include "runtime/kernel_abi.h"
