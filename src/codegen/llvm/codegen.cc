#include "codegen/llvm/codegen.h"
