// Constants of labels and of logarithms of probabilities.
#ifndef popops_EncodingConstants_hpp
#define popops_EncodingConstants_hpp

// A label that takes no part.
#define MASKED_LABEL_CODE 0xFFFFFFFFU

// What is added to a probability before its logarithm is taken.
#define EPS_LOG_N_FLOAT (1.17549435e-38F)
#define EPS_LOG_N_HALF (0.000000059605F)

#endif
