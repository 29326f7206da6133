// Elementwise operations, reductions and the optimizer update on all threads. Arguments are those
// of Device, already checked.
#pragma once

#include <span>

#include "engine/ops/cpu/context/context.h"
#include "engine/ops/device.h"

namespace troupe::engine::ops::cpu {

void upload_from(const Context& context, Tensor& to, const Source& source);
void visit_rows(const Context& context, const Tensor& from, const RowVisitor& visit);
void fill(const Context& context, Tensor& x, float value);
void add(const Context& context, const Tensor& a, const Tensor& b, Tensor& sum);
void scale(const Context& context, Tensor& x, float factor);
void dropout(const Context& context, const Tensor& x, const Dropout& how, Tensor& y);
void adamw(const Context& context, Tensor& values, Tensor& grads, Tensor& m, Tensor& v,
           const AdamW& how);
double sum_of_squares(const Context& context, const Tensor& x);
bool all_finite(const Context& context, const Tensor& x);
void gated(const Context& context, Activation activation, const Tensor& gate, const Tensor& up,
           Tensor& y);
void gated_backward(const Context& context, Activation activation, const Tensor& gate,
                    const Tensor& up, const Tensor& dy, Tensor& dgate, Tensor& dup, Tensor* y);
void activate(const Context& context, Activation activation, const Tensor& x, Tensor& y);
void activate_backward(const Context& context, Activation activation, const Tensor& x,
                       const Tensor& dy, Tensor& dx);

}  // namespace troupe::engine::ops::cpu
