# The platform's image: web, workers and beat of compose.yaml. Build it where a registry can be reached:
#   docker build -t spak-platform .
# Packages go to /usr/local, so that programs have the same paths here and in a sandbox image built on this one
# (spak sandbox build --base spak-platform).
FROM python:3.11-bookworm

RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent spak
WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md manage.py ./
COPY agents agents
COPY platform platform
COPY docs docs
COPY sandbox sandbox
COPY specs specs
COPY static static
COPY templates templates
RUN pip install --no-cache-dir --no-deps --no-build-isolation --no-index -e . && rm -rf /root/.cache

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DJANGO_SETTINGS_MODULE=spakweb.settings
USER 10001:10001
CMD ["python", "manage.py", "serve"]
