// Numbers the units of a GRU cell: reset gate, update gate and candidate.
#ifndef popnn_GruDef_hpp
#define popnn_GruDef_hpp

enum BasicGruCellUnit {
  BASIC_GRU_CELL_RESET_GATE = 0,
  BASIC_GRU_CELL_UPDATE_GATE = 1,
  BASIC_GRU_CELL_CANDIDATE = 2,
  BASIC_GRU_CELL_NUM_UNITS = 3
};

#endif
