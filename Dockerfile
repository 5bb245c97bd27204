# Simulated IPUs for TensorFlow, on a CPU:
#   docker build -t tf_ipu_shim . && docker run --rm -v "$PWD:/work" tf_ipu_shim train.py
# The plugin is compiled where g++ is; what is run has none.
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/ipu
COPY . /src
RUN /opt/ipu/bin/pip install --no-cache-dir /src \
    && /opt/ipu/bin/tf-ipu build --into-package \
    && rm -rf /opt/ipu/lib/python3.11/site-packages/tensorflow/include

FROM python:3.11-slim
COPY --from=build /opt/ipu /opt/ipu
ENV PATH=/opt/ipu/bin:$PATH
RUN useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["tf-ipu", "run"]
