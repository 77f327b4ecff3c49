# Built with the compiler, run without it.

FROM python:3.11.14-slim-bookworm AS build

RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*

# A build without GPU is a tenth of the size: --build-arg PIP_EXTRA_INDEX_URL=<an index with CPU builds of torch>
ARG PIP_EXTRA_INDEX_URL
RUN python -m venv /opt/turnstile \
 && /opt/turnstile/bin/pip install --no-cache-dir --disable-pip-version-check torch==2.13.0

WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY kernels kernels
COPY grammar grammar
COPY prefix_cache prefix_cache
COPY runtime runtime
COPY gateway gateway
COPY bench bench
RUN /opt/turnstile/bin/pip install --no-cache-dir --disable-pip-version-check .


FROM python:3.11.14-slim-bookworm

RUN useradd --uid 10001 --create-home --home-dir /var/lib/turnstile --shell /usr/sbin/nologin turnstile
COPY --from=build /opt/turnstile /opt/turnstile

# The model is fetched at the first start, into the volume. Whoever publishes the port says who may call:
# TURNSTILE_API_KEYS, or TURNSTILE_ALLOW_OPEN=true; without either the gateway refuses to listen.
ENV PATH=/opt/turnstile/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TURNSTILE_HOST=0.0.0.0 \
    TURNSTILE_DATA_DIR=/var/lib/turnstile
USER turnstile
WORKDIR /var/lib/turnstile
VOLUME /var/lib/turnstile
EXPOSE 8000

HEALTHCHECK --interval=10s --timeout=3s --start-period=180s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=2)"]

STOPSIGNAL SIGTERM
ENTRYPOINT ["turnstile"]
CMD ["serve"]
