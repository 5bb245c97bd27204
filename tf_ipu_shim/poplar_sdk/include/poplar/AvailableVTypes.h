// Defines the macros that tell codelets which vector layouts the simulated IPUs (Mk2) have.
#ifndef POPLAR_AVAILABLE_V_TYPES_H
#define POPLAR_AVAILABLE_V_TYPES_H

#define VECTOR_AVAIL_SHORT_SPAN 1
#define VECTORLIST_AVAIL_DELTANELEMENTS 1

#endif
