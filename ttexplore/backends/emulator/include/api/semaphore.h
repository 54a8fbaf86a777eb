#pragma once
#include "api/dataflow/noc_semaphore.h"
