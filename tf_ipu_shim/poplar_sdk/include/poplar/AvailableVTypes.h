// The layouts of vectors that the simulated IPUs have, those of a Mk2 IPU.
#ifndef POPLAR_AVAILABLE_V_TYPES_H
#define POPLAR_AVAILABLE_V_TYPES_H

#define VECTOR_AVAIL_SHORT_SPAN 1
#define VECTORLIST_AVAIL_DELTANELEMENTS 1

#endif
