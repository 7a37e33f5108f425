# All dependencies of a study, at the versions of constraints.txt that the tests ran with.
#
#   docker build --tag tasktransfer .
#   docker run --rm --volume "$PWD:/study" tasktransfer demo                  # into ./tasktransfer-demo
#   docker run --rm --volume "$PWD:/study" --entrypoint snakemake tasktransfer --cores all
#
# For GPUs, add `--gpus all`. For another build of torch: --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu
FROM python:3.11-slim

ARG TORCH_INDEX=https://pypi.org/simple
WORKDIR /source

# torch has its own layer, because it is by far the largest and changes least.
COPY constraints.txt ./
RUN pip install --no-cache-dir --index-url "$TORCH_INDEX" --extra-index-url https://pypi.org/simple \
        --constraint constraints.txt torch

COPY pyproject.toml README.md LICENSE ./
COPY envs envs
COPY workflow workflow
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt '.[train]'

# Results belong to the user who runs the container (--user), so caches are in a world-writable folder.
ENV HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib XDG_CACHE_HOME=/tmp/cache
WORKDIR /study
ENTRYPOINT ["tasktransfer"]
CMD ["--help"]
