// The vector layouts of the simulated IPUs: those of a Mk2 IPU.
#ifndef POPLAR_AVAILABLE_V_TYPES_H
#define POPLAR_AVAILABLE_V_TYPES_H

#define VECTOR_AVAIL_SHORT_SPAN 1
#define VECTORLIST_AVAIL_DELTANELEMENTS 1

#endif
