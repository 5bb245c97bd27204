// Compiles an expression of popops::map() to a list of functions that run on blocks of elements.
#ifndef tf_ipu_shim_popops_expression_program_hpp
#define tf_ipu_shim_popops_expression_program_hpp

#include <array>
#include <cstddef>
#include <poplar/Type.hpp>
#include <poplar/detail/archive.hpp>
#include <popops/Expr.hpp>
#include <string>
#include <vector>

#include "block_functions.hpp"

namespace popops::detail {

// Where an input's element for each index of the result lies: contiguous, or by strides of the result's dimensions.
struct InputLayout {
  bool contiguous = true;
  std::vector<std::size_t> strides;
};

class ExpressionProgram {
 public:
  static constexpr std::size_t BLOCK = 1024;

  ExpressionProgram() = default;
  // Throws poplibs_error for operands whose types do not fit.
  ExpressionProgram(const expr::Expr &expression, const std::vector<poplar::Type> &inputs);

  const poplar::Type &resultType() const { return registers_[result_].type; }

  // Memory for one thread.
  class Workspace {
   public:
    explicit Workspace(const ExpressionProgram &program);
    void *block(std::size_t index) { return memory_.data() + index * BLOCK; }

   private:
    std::vector<std::uint64_t> memory_;
  };

  // Computes elements [begin, begin + count) of the result, at most a block, and writes them to `out`.
  void run(Workspace &workspace, const std::vector<const void *> &inputs, const std::vector<InputLayout> &layouts,
           const std::vector<std::size_t> &shape, std::size_t begin, std::size_t count, void *out) const;

 private:
  enum class Source { INPUT, CONSTANT, INSTRUCTION };

  // A value: an input, a constant or the result of an instruction.
  struct Register {
    poplar::Type type;
    Source source;
    std::size_t input = 0;
    double floating = 0;
    std::uint64_t integer = 0;
    BlockFunction function = nullptr;
    std::array<std::size_t, 3> operands{};
    std::size_t operand_count = 0;
  };

  std::size_t compile(const expr::Expr &expression, const std::vector<poplar::Type> &inputs, const poplar::Type *hint);
  std::size_t compileConstant(const expr::Const &constant, const poplar::Type *hint);
  std::size_t compileInput(const expr::PlaceHolder &placeholder, const std::vector<poplar::Type> &inputs);
  std::size_t compileCast(const expr::Cast &cast, const std::vector<poplar::Type> &inputs);
  std::size_t compileOperation(const expr::Expr &expression, const std::vector<poplar::Type> &inputs,
                               const poplar::Type *hint);
  std::size_t addInstruction(const poplar::Type &type, BlockFunction function, std::vector<std::size_t> operands);
  void fillConstant(const Register &constant, void *block) const;
  const void *operandData(Workspace &workspace, std::size_t index, const std::vector<const void *> &inputs,
                          const std::vector<InputLayout> &layouts, const std::vector<std::size_t> &shape,
                          std::size_t begin, std::size_t count) const;

  std::vector<Register> registers_;
  std::size_t result_ = 0;

  template <class Archive>
  friend void transferFields(Archive &archive, Register &part) {
    poplar::detail::transfer(archive, part.type, part.source, part.input, part.floating, part.integer, part.function,
                             part.operands, part.operand_count);
  }
  template <class Archive>
  friend void transferFields(Archive &archive, ExpressionProgram &part) {
    poplar::detail::transfer(archive, part.registers_, part.result_);
  }
};

POPLAR_FIELDS(InputLayout, part.contiguous, part.strides)

}  // namespace popops::detail

#endif
