#pragma once

// The definitions of Worker's members. Included by worker.h at its end, by nobody else.

#include "dataplane/pipeline/stage_affinity.h"
#include "dataplane/pipeline/stage_direct_return.h"
#include "dataplane/pipeline/stage_flood.h"
#include "dataplane/pipeline/stage_forward.h"
#include "dataplane/pipeline/stage_fragment.h"
#include "dataplane/pipeline/stage_hit.h"
#include "dataplane/pipeline/stage_icmp.h"
#include "dataplane/pipeline/stage_lookup.h"
#include "dataplane/pipeline/stage_miss.h"
#include "dataplane/pipeline/stage_neighbour.h"
#include "dataplane/pipeline/stage_open.h"
#include "dataplane/pipeline/stage_parse.h"
#include "dataplane/pipeline/stage_receive.h"
#include "dataplane/pipeline/stage_refuse.h"
#include "dataplane/pipeline/stage_source_port.h"
#include "dataplane/pipeline/stage_steer.h"
#include "dataplane/pipeline/stage_upkeep.h"
